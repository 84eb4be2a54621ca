"""Prints the lowest version that pyproject.toml allows of each package that opschema needs: `python -m tests.lowest`."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.version import Version

from tests.test_dependencies import EXTRAS, PROJECT


def lowest_versions() -> Iterator[str]:
    """The lowest version that is allowed of each requirement, as arguments of pip: ``libcst==1.9``."""
    for requirement in map(Requirement, (*PROJECT["dependencies"], *EXTRAS["lsp"])):
        if requirement.marker is None or requirement.marker.evaluate():
            bounds = [Version(item.version) for item in requirement.specifier if item.operator == ">="]
            yield f"{requirement.name}=={max(bounds)}"


if __name__ == "__main__":
    print(*lowest_versions())

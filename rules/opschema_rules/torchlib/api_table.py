"""The functions of ``torch.library`` that register, and their parameters, by release of torch: ``api.json``.

:mod:`.api_history` writes the file. It holds of each release what is new or another, and what was removed (null).
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from opschema_cli.installed_tables import installed_table
from opschema_cli.requirements import Version, nearest_release, read_version

TABLE = Path(__file__).with_name("api.json")


@lru_cache(maxsize=1)
def _tables() -> dict[Version, dict[str, str]]:
    found: dict[Version, dict[str, str]] = {}
    known: dict[str, str] = {}
    for release, changes in installed_table(TABLE, dict[str, dict[str, str | None]]).items():
        known = {name: text for name, text in {**known, **changes}.items() if text is not None}
        version = read_version(release)
        assert version is not None
        found[version] = known
    return found


def known_releases() -> tuple[Version, ...]:
    """The releases that are known, the oldest first."""
    return tuple(_tables())


def functions_of(torch: Version) -> dict[str, str]:
    """The functions of a release with their parameters as text; of an unknown release those of the nearest older one."""
    return _tables()[nearest_release(torch, known_releases())]


def releases_with(name: str, parameter: str = "") -> list[Version]:
    """Return the releases that have a function, or this parameter of it."""
    return [
        version
        for version, found in _tables().items()
        if name in found and (not parameter or takes(found[name], parameter))
    ]


@lru_cache(maxsize=256)
def parameters(text: str) -> frozenset[str] | None:
    """Return the names that a function accepts as keywords; None for any name."""
    arguments = ast.parse(f"def f({text}): 0").body[0].args  # type: ignore[attr-defined]
    if arguments.kwarg is not None:
        return None
    return frozenset(item.arg for item in (*arguments.args, *arguments.kwonlyargs))


def takes(text: str, keyword: str) -> bool:
    """Whether a function takes an argument of that name as a keyword."""
    names = parameters(text)
    return names is None or keyword in names

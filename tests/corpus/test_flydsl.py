"""FlyDSL: at the commits that mended by hand what opschema finds, and at its newest; the migrations' tests are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import Linted
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.pack import PACK

LintRevision = Callable[..., Linted]

JUDGED = Path(__file__).with_name("judged")


@pytest.fixture
def lint(corpus: Path) -> LintRevision:
    def lint_revision(commit: str, *select: str) -> Linted:
        root = corpus / "flydsl" / commit
        if not root.is_dir():
            pytest.skip(f"flydsl/{commit} is not below OPSCHEMA_CORPUS")
        registry = Registry((PACK,))
        project = Project(Workspace(root), Cache.for_workspace(root))
        return Linted(run(Job(registry, resolve_settings(Config(), registry, select=select)), project), project)

    return lint_revision


def findings(linted: Linted) -> list[str]:
    """``CODE severity path:line what is there``, in report order."""
    return [
        f"{item.code} {item.severity.value} {item.place.path}:{linted.position(item.place).line} "
        f"{' '.join(linted.text(item.place).split())}"
        for item in linted.diagnostics
    ]


# Each finding has been read, and is true.


@pytest.mark.parametrize(
    ("commit", "errors"), [("5e64bba2", 11), ("202793de", 11), ("fd6ff00c", 6), ("801fc4e6", 6), ("11c4174d", 4)]
)
def test_what_is_found_is_what_was_judged(commit: str, errors: int, lint: LintRevision) -> None:
    found = findings(lint(commit))
    assert found == (JUDGED / f"flydsl-{commit}.txt").read_text().splitlines()
    assert sum(" error " in item for item in found) == errors


# People mended 18 calls without a size in 202793de, and in fd6ff00c 7 whose size is baked into the code and not into the key.

RESOURCES = {
    "kernels/mixed_moe_gemm_2stage.py": (576, 624, 631, 2749, 2827),
    "kernels/moe_blockscale_2stage.py": (304, 324, 326, 327, 1434, 1454),
    "kernels/moe_gemm_2stage.py": (403, 425, 427, 428, 1961, 1981),
    "kernels/preshuffle_gemm.py": (399,),
}
TENSORS = {"examples/04-preshuffle_gemm.py": (26, 27, 28), "kernels/fp8_gemm_utils.py": (20, 133, 134, 135)}


@pytest.mark.parametrize(
    ("commit", "lines"), [("5e64bba2", {**RESOURCES, **TENSORS}), ("202793de", TENSORS), ("fd6ff00c", {})]
)
def test_sizes_that_people_gave(commit: str, lines: dict[str, tuple[int, ...]], lint: LintRevision) -> None:
    linted = lint(commit, "FLY201")
    found: dict[str, tuple[int, ...]] = {}
    for item in linted.diagnostics:
        found[item.place.path] = (*found.get(item.place.path, ()), linted.position(item.place).line)
    assert found == lines

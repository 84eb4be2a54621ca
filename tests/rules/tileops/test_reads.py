"""The Python files that are parsed while the pack is imported are those that it then asks for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions, reads
from opschema_rules.tileops.load import load

FIXTURES = Path(__file__).parents[3] / "fixtures"
ENTRY = "ReluFwdOp:\n  signature: {}\n  roofline: {}\n  workloads: []\n  source:\n    "


class _Asked(Project):
    """A project that notes the files that it is asked for."""

    asked: set[str]

    def load_python(self, paths: Iterable[str], *, ahead: bool = False, along: tuple[str, ...] = ()) -> None:
        wanted = list(paths)
        self.asked.update(wanted)
        super().load_python(wanted, ahead=ahead, along=along)


@pytest.mark.parametrize("name", ["tilekit", "tilekit_drifted", "tilekit_migrated"])
def test_they_are_those_of_the_package_of_ops(name: str) -> None:
    root = FIXTURES / name
    files = {
        f"{path.relative_to(root)}": path.read_text() for path in root.rglob("*") if path.suffix in (".py", ".yaml")
    }
    project = _Asked(Workspace(Path("/nowhere"), files))
    project.asked = set()
    early = set(reads(project, TileopsOptions()))
    load(project, TileopsOptions())
    assert early
    assert early <= project.asked
    assert {path for path in project.asked - early if "/ops/" in path} == set()


@pytest.mark.parametrize(
    "source",
    ["op: kit/ops/relu.py", 'op: "kit/ops/relu.py"', "op: kit/ops/relu.py  # the class", "{op: kit/ops/relu.py}"],
)
def test_the_folders_of_ops_are_found_however_they_are_written(source: str) -> None:
    text = ENTRY + source + "\n" if source[0] != "{" else ENTRY.rstrip() + f" {source}\n"
    files = dict.fromkeys(
        ("src/kit/ops/relu.py", "src/kit/ops/norm/rms.py", "src/kit/kernels/k.py", "tests/relu.py"), ""
    )
    project = Project(Workspace(Path("/nowhere"), {"kit/manifest/a.yaml": text, **files}))
    assert sorted(reads(project, TileopsOptions())) == ["src/kit/ops/norm/rms.py", "src/kit/ops/relu.py"]


def test_paths_that_nothing_has_lead_nowhere() -> None:
    files = {"manifest/a.yaml": ENTRY + "op: kit/ops/gone.py\n", "other/kit/ops/relu.py": ""}
    assert list(reads(Project(Workspace(Path("/nowhere"), files)), TileopsOptions())) == []

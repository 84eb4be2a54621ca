"""The trees that `drop-carrier` works on: few at a time whatever it rewrites, each parsed once, and that alters no outcome."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.generate_carriers import generate_carriers
from opschema_cli.migrate import workbench
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.testing import migrate_files
from opschema_rules.tileops.pack import PACK

KIT = Path(__file__).parents[4] / "fixtures" / "tilekit"


def texts(root: Path) -> dict[str, str]:
    """The files of a folder that a migration may read."""
    found = (path for path in root.rglob("*") if path.suffix in (".py", ".yaml", ".toml", ".md"))
    return {path.relative_to(root).as_posix(): path.read_text() for path in found}


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As the command runs: what nothing refers to goes, what refers to itself stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_trees_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate_carriers(tmp_path / "kit", 60)
    files = texts(tmp_path / "kit")
    modules = [path for path in files if path.startswith("carried/ops/ops_")]
    assert len(modules) == 6
    alive: weakref.WeakSet[PythonTree] = weakref.WeakSet()
    parsed: list[str] = []
    most = 0
    parse = PythonTree.parse

    def counted(text: str) -> PythonTree:
        nonlocal most
        tree = parse(text)
        parsed.append(text)
        alive.add(tree)
        most = max(most, len(alive))
        return tree

    monkeypatch.setattr(PythonTree, "parse", counted)
    monkeypatch.setattr(workbench, "OPEN_FILES", 4)
    found = migrate_files(PACK, "drop-carrier", files)
    assert not any("_stand_in" in found.files[path] for path in modules)
    assert [parsed.count(files[path]) for path in modules] == [1] * 6
    assert most <= 5
    assert not alive


@pytest.mark.parametrize("kept", [0, 1])
def test_few_trees_alter_no_outcome(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = texts(KIT)
    expected = migrate_files(PACK, "drop-carrier", files)
    monkeypatch.setattr(workbench, "OPEN_FILES", kept)
    found = migrate_files(PACK, "drop-carrier", files)
    assert found.files == expected.files != files
    assert found.notes() == expected.notes()

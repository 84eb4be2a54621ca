"""The fixtures flykit and flykit_broken: what lint says of them, and a stale artefact that the harness catches."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.testing import lint_files, migrate_files
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl import code
from opschema_rules.flydsl.pack import PACK
from opschema_rules.tileops.pack import PACK as TILEOPS
from tests.command import TILEKIT, Here

FLYKIT, BROKEN = TILEKIT.with_name("flykit"), TILEKIT.with_name("flykit_broken")


def texts_of(fixture: Path) -> dict[str, str]:
    workspace = Workspace(fixture)
    return {path: workspace.source(path).text for path in workspace.files}


def found_in(fixture: Path) -> set[tuple[str, int, str]]:
    """Path, line and rule of each finding of the packs that know the fixture."""
    linted = lint_files([PACK, TILEOPS], texts_of(fixture))
    return {(item.place.path, linted.position(item.place).line, item.name) for item in linted.diagnostics}


def test_lint_finds_nothing_in_flykit() -> None:
    assert found_in(FLYKIT) == set()


def test_lint_finds_each_fault_of_flykit_broken() -> None:
    """A comment names each fault above the line that it is in."""
    named: set[tuple[str, int, str]] = set()
    for path in BROKEN.rglob("*.py"):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = text.strip().removeprefix("# ").split(", ") if text.lstrip().startswith("# ") else []
            named.update((path.relative_to(BROKEN).as_posix(), line + 1, word) for word in words)
    assert found_in(BROKEN) == named


def test_the_same_is_found_where_nothing_stays_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = lint_files([PACK], texts_of(BROKEN)).diagnostics
    monkeypatch.setattr(code, "MAX_UNPACKED", 0)
    assert lint_files([PACK], texts_of(BROKEN)).diagnostics == kept != []


def test_a_migration_mends_the_extent_that_is_baked_in() -> None:
    done = migrate_files(PACK, "extent-to-parameter", texts_of(BROKEN), ["names=ROWS"])
    assert done.notes() == []
    before, after = (lint_files([PACK], texts, ["module-extent"]).codes() for texts in (texts_of(BROKEN), done.files))
    assert (before, after) == (["FLY209"], [])


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Flykit with the faulty files over its own."""
    root = tmp_path_factory.mktemp("kits") / "broken"
    shutil.copytree(FLYKIT, root, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copytree(BROKEN, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return root


def pytest_in(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_flykits_own_tests() -> None:
    pytest.importorskip("torch")
    run = pytest_in(FLYKIT)
    assert run.returncode == 0, run.stdout + run.stderr


def verify(opschema: Here, *options: str) -> dict[str, str]:
    """Of each cell the verdict, and the first check that found something."""
    done = opschema("verify", "--device", "cpu", "--output-format", "json", *options)
    assert done.out, done.err
    found = {item["id"]: item for item in json.loads(done.out)["cells"]}
    return {
        name: " ".join([item["verdict"], *(finding["check"] for finding in item.get("findings", ())[:1])])
        for name, item in found.items()
    }


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_stale_artefact_is_caught(
    broken: Path, tmp_path: Path, forkservers: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is compiled for the first shape drops stores of a larger one, and stores behind the end of a smaller one."""
    pytest.importorskip("torch")
    opschema = Here(broken, tmp_path / "cache", monkeypatch, capsys)
    found = verify(opschema, "ScaleFwdOp", "AddFwdOp", "--cells", "14", "--before", str(FLYKIT))
    scale = {cell: verdict for cell, verdict in found.items() if cell.startswith("ScaleFwdOp")}
    assert scale["ScaleFwdOp[small-float32-row-s0]"] == "unchanged"
    assert scale["ScaleFwdOp[small-float32-odd-s0]"] == "regression overrun"
    assert scale["ScaleFwdOp[small-float32-larger-s0]"] == "regression poison"
    assert scale["ScaleFwdOp[small-float32-one-row-s0]"] == "regression overrun"
    assert {verdict for cell, verdict in found.items() if cell not in scale} == {"unchanged"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_sound_ops_pass(
    tmp_path: Path, forkservers: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    found = verify(Here(FLYKIT, tmp_path / "cache", monkeypatch, capsys), "--cells", "8")
    assert len(found) == 24
    assert set(found.values()) == {"within-tolerance"}

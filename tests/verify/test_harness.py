"""The harness around the workers: packages that are missing, processes that are killed, and the threads of each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from opschema_cli.verify.child_processes import computed
from opschema_cli.verify.harness import Harness
from opschema_cli.verify.loading import HarnessError
from opschema_cli.verify.model import Plan, Target
from opschema_cli.verify.plugin import CellItem
from opschema_cli.verify.results import Header, Version
from opschema_cli.verify.run import Run
from opschema_cli.verify.workers import Workers
from tests.verify.oplib import cell

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

BUSY = """
import os, pathlib, signal

def op(x, do):
    flag = pathlib.Path(__file__).with_name("kills")
    left = int(flag.read_text()) if flag.exists() else 0
    if left:
        flag.write_text(str(left - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return x + 1
"""


def tree(root: Path, **modules: str) -> Path:
    root.mkdir()
    for name, text in modules.items():
        (root / f"{name}.py").write_text(text)
    return root


def run_of(folder: Path, before: Path, after: Path, modules: dict[str, str]) -> Run:
    """A run of ops, each the function ``op`` of a module, with two cells of each."""
    plans = tuple(
        Plan(
            op=op,
            target=Target(root=str(after), module=module, name="op"),
            cells=tuple(cell(f"r{number}", op=op) for number in range(2)),
        )
        for op, module in modules.items()
    )
    places = {plan.op: msgspec.structs.replace(plan.target, root=str(before)) for plan in plans}
    names = tuple(item.id for plan in plans for item in plan.cells)
    version = Version(name=".")
    header = Header(
        run="x", shard=1, shards=1, total=len(names), before=version, after=version, device="cpu-sim", cells=names
    )
    return Run(header=header, plans=plans, compared=True, before=places, folder=str(folder), seconds=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sides for which processes are started."""
    found: list[str] = []
    start = Workers._process
    monkeypatch.setattr(
        Workers, "_process", lambda self, side, *rest: (found.append(side), start(self, side, *rest))[1]
    )
    return found


def test_a_missing_package_is_found_out_once(tmp_path: Path, folder: Path, started: list[str]) -> None:
    needs = "import opschema_gone\n\ndef op(x, do): return x + 1\n"
    modules = {"a": needs, "b": needs, "c": "def op(x, do): return x + 1\n", "d": "raise ValueError('no')\n"}
    before, after = tree(tmp_path / "before", **modules), tree(tmp_path / "after", **modules)
    harness = Harness(run_of(folder, before, after, {"A": "a", "B": "b", "C": "c", "D": "d"}))
    try:
        found = {item.id: harness.check(plan, item) for plan in harness._run.plans for item in plan.cells}
    finally:
        harness.close()
    reasons = {result.op: result.reason for result in found.values()}
    assert reasons["A"] == reasons["B"] == "after cannot be run: `opschema_gone`, which it imports, is not installed"
    assert found["C[r0-float32-row-s0]"].verdict == "unchanged"
    assert "ValueError: no" in reasons["D"]
    # A once for each side and for the reference, two surveys, nothing for B, and C and D as ever
    assert started.count("after") == started.count("before") == 4
    assert started.count("reference") == 3


@pytest.mark.parametrize(("side", "kills"), [("before", 1), ("after", 1), ("before", 2), ("after", 2)])
def test_a_process_that_is_killed_is_tried_again(tmp_path: Path, folder: Path, side: str, kills: int) -> None:
    before, after = tree(tmp_path / "before", lib=BUSY), tree(tmp_path / "after", lib=BUSY)
    (tmp_path / side / "kills").write_text(str(kills))
    harness = Harness(run_of(folder, before, after, {"Op": "lib"}))
    plan = harness._run.plans[0]
    try:
        if (side, kills) == ("before", 2):
            with pytest.raises(HarnessError, match=r"the process of the side before was killed twice: .* SIGKILL"):
                harness.check(plan, plan.cells[0])
            return
        result = harness.check(plan, plan.cells[0])
    finally:
        harness.close()
    assert result.verdict == ("unchanged" if kills == 1 else "regression")


@pytest.mark.parametrize(("given", "seen"), [("", str(max(1, len(os.sched_getaffinity(0)) // 3))), ("7", "7")])
def test_sides_share_the_processors(
    tmp_path: Path, folder: Path, given: str, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    lib = "import os\n\ndef op(x, do): raise ValueError(os.environ['OMP_NUM_THREADS'])\n"
    harness = Harness(
        run_of(folder, tree(tmp_path / "before", lib=lib), tree(tmp_path / "after", lib=lib), {"Op": "lib"})
    )
    plan = harness._run.plans[0]
    try:
        assert f"ValueError: {seen}" in harness.check(plan, plan.cells[0]).reason
    finally:
        harness.close()


def test_no_reference_is_computed_where_no_side_returns_anything(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    answer = Workers.run
    monkeypatch.setattr(
        Workers,
        "run",
        lambda self, side, plan, cell, *rest, **more: (
            asked.append((side, cell.row)),
            answer(self, side, plan, cell, *rest, **more),
        )[1],
    )
    lib = "def op(x, do):\n    if do: raise ValueError('no')\n    return x + 1\n"
    run = run_of(folder, tree(tmp_path / "before", lib=lib), tree(tmp_path / "after", lib=lib), {"Op": "lib"})
    plan = run.plans[0]
    harness = Harness(run)
    try:
        verdicts = [
            harness.check(plan, cell(row, do)).verdict
            for row, do in (("first", "no"), ("second", "no"), ("third", ""), ("fourth", ""))
        ]
    finally:
        harness.close()
    assert verdicts == ["not-checked", "not-checked", "unchanged", "unchanged"]
    assert [row for side, row in asked if side == "reference"] == ["first", "third", "fourth"]


def test_an_unexpected_error_is_told_in_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ProcessLookupError(3, "No such process")

    item = object.__new__(CellItem)
    monkeypatch.setattr("opschema_cli.verify.child_processes._fields", fail)
    with pytest.raises(ProcessLookupError) as raised:
        computed(os.getpid())
    said = item.repr_failure(raised)
    assert said.startswith("the harness failed: ProcessLookupError: [Errno 3] No such process\nchild_processes.py:")
    assert said.count("\n") == 1

"""Faults planted in tilekit's kernels and ops are regressions, in their cells, named by their checks; sound kernels raise no
alarm. All runs through the real harness, with worker processes and compiled kernels.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from opschema_cli.commands.plugins import open_workspace
from opschema_cli.verify.harness import Harness
from opschema_cli.verify.model import Cell, CellResult, Limits, Plan, Target
from opschema_cli.verify.prepare import make_plans
from opschema_cli.verify.results import Header, Version
from opschema_cli.verify.run import CPU_LABEL, Run
from tests.verify.faults import FAULTS, SOUND, Fault, plant

TILEKIT = Path(__file__).resolve().parents[2] / "fixtures" / "tilekit"
SEEDS = int(os.environ.get("OPSCHEMA_SEEDS", "2"))

pytestmark = [
    pytest.mark.skipif(not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="no C++ compiler is found"),
    pytest.mark.usefixtures("compiled_kernels"),
]


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """Tilekit's plans by op. Torch's own tests of operators, which take seconds, are no matter of these faults: with an attribute
    that no op has, none is named, and workers are forked from what has imported torch's compiler, as the ops' calls do.
    """
    with closing(open_workspace(TILEKIT, no_plugins=True, cache=False)) as session:
        found = {plan.op: plan for plan in make_plans(session, (), Limits(cells=400))}
    return {
        op: msgspec.structs.replace(
            plan, target=msgspec.structs.replace(plan.target, operators=(), operators_attribute="none")
        )
        for op, plan in found.items()
    }


class Bench:
    """Runs cells of plans against the sound tree; one harness for all, so that little is started and compiled twice."""

    def __init__(self, folder: Path) -> None:
        here = Version(name="")
        header = Header(run="", shard=1, shards=1, total=0, before=here, after=here, device=CPU_LABEL, cells=())
        self.before: dict[str, Target] = {}
        run = Run(header=header, plans=(), compared=True, before=self.before, folder=str(folder))
        self.harness = Harness(run)

    def check(self, sound: Plan, after: Plan, cells: list[Cell]) -> list[CellResult]:
        """The results of cells of a plan, whose name is its own: the harness keeps the workers of a name."""
        self.before[after.op] = sound.target
        return [self.harness.check(after, cell) for cell in cells]


@pytest.fixture(scope="module")
def bench(compiled_kernels: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    found = Bench(tmp_path_factory.mktemp("bench"))
    yield found
    found.harness.close()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_a_regression_in_its_cell_named_by_its_check(
    fault: Fault, plans: dict[str, Plan], bench: Bench, tmp_path: Path
) -> None:
    plan = plans[fault.op]
    target = msgspec.structs.replace(plan.target, root=str(plant(fault, TILEKIT, tmp_path)), recipe="")
    after = msgspec.structs.replace(plan, op=f"{plan.op}: {fault.name}", target=target)
    cells = {cell.id: cell for cell in plan.cells}
    results = bench.check(plan, after, [cells[f"{fault.op}[{name}]"] for name in fault.cells])
    told = dict(zip(fault.cells, map(_told, results), strict=True))
    for name, check in fault.cells.items():
        expected = SOUND if check == SOUND else "regression"
        assert told[name][0] == expected, told[name]
        assert check == SOUND or check in told[name][1], told[name]


def _told(result: CellResult) -> tuple[str, set[str], str]:
    """The verdict, the checks that found something on the side after, the reason."""
    checks = {finding.check for finding in result.findings if finding.side == "after"}
    broken = {"raised", "died", "stalled"} & {result.reason.removeprefix("after ").partition(":")[0]}
    return result.verdict, checks | broken, result.reason


def test_sound_kernels_raise_no_alarm_over_many_seeds(plans: dict[str, Plan], bench: Bench) -> None:
    """Small cells in turn: every dtype, odd shapes, strides, special values, each seed another kind."""
    count = 0
    for plan in plans.values():
        small = [cell for cell in plan.cells if not cell.again and cell.shape in ("odd", "tail-1", "one-row")]
        kinds = [kind for cell in small for kind in _kinds(cell)]
        cells = [msgspec.structs.replace(kinds[seed * 7 % len(kinds)], seed=seed) for seed in range(SEEDS) if kinds]
        for result in bench.check(plan, plan, cells):
            assert (result.verdict, result.reason, result.findings) == (SOUND, "", ()), result
            count += 1
    assert count >= SEEDS * 10


def _kinds(cell: Cell) -> list[Cell]:
    """A cell in all values and layouts."""
    replace = msgspec.structs.replace
    return [cell, replace(cell, values="special"), replace(cell, layout="strided"), replace(cell, values="zeros")]

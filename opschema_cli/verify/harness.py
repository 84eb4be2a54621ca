"""Runs cells on both sides and the reference, compares, judges."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

import msgspec
from torch import Tensor

from opschema_cli.verify.cells import alike_integers
from opschema_cli.verify.evidence import Evidence, load
from opschema_cli.verify.judge import REFUSED_BY_BOTH, Judgement, Traits, judge
from opschema_cli.verify.kernel_caches import CachesInUse, caches_of
from opschema_cli.verify.large.free_memory import alone
from opschema_cli.verify.large.judging import judge_large, not_run
from opschema_cli.verify.loading import HarnessError
from opschema_cli.verify.model import FOUND_ROWS, SHOWS_NOTHING, Cell, CellResult, Plan, Ran, Side, Target
from opschema_cli.verify.run import Run
from opschema_cli.verify.worker_process import killed_from_outside
from opschema_cli.verify.workers import Workers
from opschema_cli.verify.worth import EXPLANATIONS

T = TypeVar("T")

_NOWHERE = Target(root="", module="", name="")
_POLL = 1.0
_REPEATS = 24
"""Number of calls of the side before if after seems to have regressed. With 24 calls, a difference in 30 % of calls is missed in
2 of 10,000 cases.
"""

_STEADY = 3
"""Number of an op's cells in which all repeated results are equal, after which no more calls are repeated."""


class Harness:
    """Runs the cells of one run in this process; sides of a cell run side by side on the CPU, one by one on a GPU.

    On a GPU two processes that use it at once would share its memory and its caches' luck.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._caches = CachesInUse(caches_of(run))
        self._workers = Workers(
            Path(run.folder) / f"process-{id(self)}-{time.monotonic_ns()}",
            device=run.device,
            sanitizer=run.sanitizer,
            threads=_threads(run),
            caches=self._caches.folders,
        )
        self._steady = Counter[str]()
        self._last_broke = False
        self._surveyed: set[Side] = set()
        self._threads = ThreadPoolExecutor(3) if run.device == "cpu" else ThreadPoolExecutor(1)

    def close(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._workers.close()
        self._caches.close()

    def check(self, plan: Plan, cell: Cell) -> CellResult:
        """Run a cell on all sides and judge it.

        Raises:
            HarnessError: the harness failed on a side.
        """
        started = time.monotonic()
        if cell.growth is not None:
            return self._check_large(plan, cell)
        ran = self._ran(plan, cell)
        _raise_failure(ran)
        before, after, reference = ran.get("before"), ran["after"], ran.get("reference")
        try:
            evidence = Evidence(plan, cell, ran)
        finally:
            for item in ran.values():
                _remove(item)
        differing, compared = evidence.differences(), evidence.compared()

        found = plan.search is not None and cell.row.startswith(FOUND_ROWS)
        weak = evidence.weakness()
        traits = Traits(
            dense=cell.layout in ("contiguous", "offset"),
            empty=_empty(cell),
            wrong=cell.wrong,
            found=found,
            doubtful=_doubtful(cell, found),
            weak=EXPLANATIONS[weak] if weak else "",
            shows_nothing=weak in SHOWS_NOTHING,
            on_gpu=self._run.device != "cpu",
        )

        def judged_with(earlier: Ran | None, explanation: str) -> Judgement:
            return judge(
                *(earlier, after, reference),
                differences=differing,
                compared=compared,
                explanation=explanation,
                traits=traits,
            )

        judged = judged_with(before, evidence.explained(differing))
        if judged.verdict == "regression" and before is not None and self._may_vary(plan, cell, before, after):
            again, spread = self._repeated(plan, cell)
            judged = judged_with(_joined(before, again), evidence.explained(differing, spread))
        own = cell.shape == "row" and judged.verdict == "not-checked" and judged.reason.startswith(REFUSED_BY_BOTH)
        return CellResult(
            id=cell.id,
            op=cell.op,
            verdict=judged.verdict,
            device=self._run.header.device,
            reason=f"{'a row of the declaration' if plan.search is None else 'a call that was found'} is {judged.reason}"
            if own
            else judged.reason,
            findings=judged.findings,
            figures=tuple(figure for found in compared.values() for figure in found.figures),
            seconds=_seconds(ran, time.monotonic() - started),
            unimported=_unimported(ran),
        )

    def _check_large(self, plan: Plan, cell: Cell) -> CellResult:
        """Run a cell with a large tensor: one side after the other, and alone on this machine.

        Raises:
            HarnessError: the harness failed on a side.
        """
        started = time.monotonic()
        ran: dict[Side, Ran] = {}
        if self._run.sanitizer is not None:
            refused = Ran(cell=cell.id, status="refused", detail="large tensors are not run under a sanitizer")
            ran["after"] = refused
        else:
            with alone():
                ran |= self._answers({"after": plan}, cell)
                if plan.op in self._run.before and not not_run(ran["after"]):
                    mine = msgspec.structs.replace(plan, target=self._run.before[plan.op])
                    ran |= self._answers({"before": mine}, cell)
        if self._run.compared and plan.op not in self._run.before:
            ran["before"] = self._absent_before(plan, cell)
        _raise_failure(ran)
        judged = judge_large(cell, ran.get("before"), ran["after"])
        return CellResult(
            id=cell.id,
            op=cell.op,
            verdict=judged.verdict,
            device=self._run.header.device,
            reason=judged.reason,
            findings=judged.findings,
            seconds=_seconds(ran, time.monotonic() - started),
            unimported=_unimported(ran),
        )

    def _may_vary(self, plan: Plan, cell: Cell, before: Ran, after: Ran) -> bool:
        """Whether the results of before may vary between calls, unless the op is known to be deterministic."""
        return not cell.wrong and before.status == after.status == "ok" and self._steady[plan.op] < _STEADY

    def _repeated(self, plan: Plan, cell: Cell) -> tuple[Ran, Mapping[str, Tensor]]:
        """The answer of the side before to many calls, and how its results spread."""
        mine = msgspec.structs.replace(plan, target=self._run.before[plan.op])
        device, seconds = self._run.device, self._run.seconds
        found = _awaited(
            {"before": self._threads.submit(self._workers.run, "before", mine, cell, device, seconds, _REPEATS)}
        )["before"]
        try:
            spread = load(found)
        finally:
            _remove(found)
        if found.status == "ok" and not found.findings:
            self._steady[plan.op] += 1
        return found, spread

    def _ran(self, plan: Plan, cell: Cell) -> dict[Side, Ran]:
        """The answer of each side for a cell. The side before is left out where nothing is compared.

        Raises:
            HarnessError: a process was killed from outside, twice.
        """
        sides: dict[Side, Plan] = {"after": plan} if cell.wrong else {"after": plan, "reference": plan}
        if plan.op in self._run.before:
            sides["before"] = msgspec.structs.replace(plan, target=self._run.before[plan.op])
        for side in _code(sides):
            self._workers.start(sides[side], side)
        if "reference" in sides and not all(self._workers.is_hopeless(plan.op, side) for side in _code(sides)):
            self._workers.start(plan, "reference")
        if not self._imported(sides):
            sides.pop("reference", None)
        # If no side returned a result in the last cell, the reference runs only after one does in this cell.
        first = {side: mine for side, mine in sides.items() if side != "reference" or not self._last_broke}
        found = self._answers(first, cell)
        killed = {side: mine for side, mine in first.items() if killed_from_outside(found[side])}
        if killed:
            found |= self._answers(killed, cell)
        works = any(found[side].status == "ok" for side in _code(found))
        if works and first != sides:
            found |= self._answers({"reference": plan}, cell)
        self._last_broke = not works
        lost = next((side for side in killed if side != "after" and killed_from_outside(found[side])), None)
        if lost is not None:
            raise HarnessError(f"the process of the side {lost} was killed twice: {found[lost].detail}")
        if self._run.compared and "before" not in sides:
            found["before"] = self._absent_before(plan, cell)
        return found

    def _absent_before(self, plan: Plan, cell: Cell) -> Ran:
        detail = self._run.absent.get(plan.op, "it is not there")
        return Ran(cell=cell.id, status="refused", detail=detail, absent=True)

    def _answers(self, sides: Mapping[Side, Plan], cell: Cell) -> dict[Side, Ran]:
        device, seconds = self._run.device, self._run.seconds
        return _awaited(
            {
                side: self._threads.submit(self._workers.run, side, mine, cell, device, seconds)
                for side, mine in sides.items()
            }
        )

    def _imported(self, sides: Mapping[Side, Plan]) -> bool:
        """Whether a side of an op can be imported; if a package is missing, find out for which other ops it is."""
        code = _code(sides)
        found = _awaited({side: self._threads.submit(self._workers.load, side, sides[side]) for side in code})
        for side in code:
            if found[side].missing and side not in self._surveyed:
                self._surveyed.add(side)
                others = (
                    msgspec.structs.replace(plan, target=self._target(plan, side))
                    for plan in self._run.plans
                    if plan.cells
                )
                self._workers.survey(side, [plan for plan in others if plan.target.module or plan.target.imports])
        return any(loaded.status == "ok" for loaded in found.values())

    def _target(self, plan: Plan, side: Side) -> Target:
        return self._run.before.get(plan.op, _NOWHERE) if side == "before" else plan.target


def _raise_failure(ran: Mapping[Side, Ran]) -> None:
    failed = next((item for item in ran.items() if item[1].status == "failed"), None)
    if failed is not None:
        raise HarnessError(f"the harness failed, on the side {failed[0]}: {failed[1].detail}")


def _doubtful(cell: Cell, found: bool) -> bool:
    """Whether integers of a call may be invalid indices: those that a search chose, and large ones."""
    large = cell.values == "wide" and alike_integers(cell.call.inputs)
    return large or (found and any("int" in item.dtype for item in cell.call.inputs))


def _threads(run: Run) -> int:
    """The threads of one process: sides run side by side on the CPU, in each process of pytest-xdist."""
    if run.device != "cpu":
        return 0
    sides = 3 if run.compared else 2
    return max(1, processors() // (sides * int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _code(sides: Iterable[Side]) -> list[Side]:
    """The sides that run the op's code."""
    return [side for side in sides if side != "reference"]


def _awaited(futures: Mapping[Side, Future[T]]) -> dict[Side, T]:
    while wait(futures.values(), _POLL).not_done:
        pass  # pytest-xdist, whose own end is gone, interrupts this thread between two waits, never in one
    return {side: future.result() for side, future in futures.items()}


def _empty(cell: Cell) -> str:
    """The axis on which an input has no elements: the ``first`` one of the op's sizes, or an ``inner`` one."""
    shapes = [item.shape for item in cell.call.inputs]
    if all(0 not in shape for shape in shapes):
        return ""
    return "first" if cell.shape == "zero-rows" else "inner"


def _joined(before: Ran, again: Ran) -> Ran:
    """Return the results of the side before, with the findings of its repeated calls."""
    known = {(finding.check, finding.about) for finding in before.findings}
    more = (finding for finding in again.findings if (finding.check, finding.about) not in known)
    return msgspec.structs.replace(before, findings=(*before.findings, *more))


def _remove(ran: Ran) -> None:
    if ran.file:
        Path(ran.file).unlink(missing_ok=True)


def _unimported(ran: Mapping[Side, Ran]) -> tuple[str, ...]:
    """The sides that could not be imported; a tree before need not have the op."""
    return tuple(
        side
        for side, item in ran.items()
        if (side != "reference" and item.unimported) or (side == "after" and item.absent)
    )


def _seconds(ran: Mapping[Side, Ran], whole: float) -> dict[str, float]:
    """Return the seconds of every side by ``side.what``, and those of the entire cell."""
    parts = {f"{side}.{what}": round(spent, 6) for side, item in ran.items() for what, spent in item.seconds.items()}
    return {**parts, "whole": round(whole, 6)}

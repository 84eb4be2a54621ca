"""Runs cells on both sides and the reference, compares, judges."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.compare import against, differences
from opschema_cli.verify.judge import REFUSED_BY_BOTH, Compared, judge
from opschema_cli.verify.loading import HarnessError
from opschema_cli.verify.model import Cell, CellResult, Figures, Finding, Plan, Ran, Side
from opschema_cli.verify.run import Run
from opschema_cli.verify.workers import Workers

_POLL = 1.0


class Harness:
    """Runs the cells of one run in this process; sides of a cell run side by side on the CPU, one by one on a GPU.

    On a GPU two processes that use it at once would share its memory and its caches' luck.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._workers = Workers(
            Path(run.folder) / f"process-{id(self)}-{time.monotonic_ns()}", device=run.device, sanitizer=run.sanitizer
        )
        self._threads = ThreadPoolExecutor(3) if run.device == "cpu" else ThreadPoolExecutor(1)

    def close(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._workers.close()

    def check(self, plan: Plan, cell: Cell) -> CellResult:
        """Run a cell on all sides and judge it.

        Raises:
            HarnessError: the harness failed on a side.
        """
        started = time.monotonic()
        ran = self._ran(plan, cell)
        failed = next((item for item in ran.items() if item[1].status == "failed"), None)
        if failed is not None:
            raise HarnessError(f"the harness failed, on the side {failed[0]}: {failed[1].detail}")
        before, after, reference = ran.get("before"), ran["after"], ran.get("reference")
        try:
            tensors = {side: _load(item) for side, item in ran.items()}
            ready = before is not None and before.status == "ok" and after.status == "ok"
            differing = differences(tensors["before"], tensors["after"]) if ready else ()
            compared: dict[str, Compared] = {
                side: found
                for side, item in ran.items()
                if side != "reference" and item.status == "ok" and reference is not None
                if (found := _against(plan, cell, side, tensors[side], tensors["reference"], reference)) is not None
            }
        finally:
            for item in ran.values():
                if item.file:
                    Path(item.file).unlink(missing_ok=True)
        judged = judge(before, after, reference, differences=differing, compared=compared, wrong=cell.wrong)
        own = cell.shape == "row" and judged.verdict == "not-checked" and judged.reason.startswith(REFUSED_BY_BOTH)
        return CellResult(
            id=cell.id,
            op=cell.op,
            verdict=judged.verdict,
            device=self._run.header.device,
            reason=f"a row of the declaration is {judged.reason}" if own else judged.reason,
            findings=judged.findings,
            figures=tuple(figure for found in compared.values() for figure in found.figures),
            seconds=_seconds(ran, time.monotonic() - started),
        )

    def _ran(self, plan: Plan, cell: Cell) -> dict[Side, Ran]:
        """The answer of each side for a cell. The side before is left out where nothing is compared."""
        sides: dict[Side, Plan] = {"after": plan} if cell.wrong else {"after": plan, "reference": plan}
        if plan.op in self._run.before:
            sides["before"] = msgspec.structs.replace(plan, target=self._run.before[plan.op])
        self._workers.start(plan, *(side for side in sides if side != "before"))
        if "before" in sides:
            self._workers.start(sides["before"], "before")
        device, seconds = self._run.device, self._run.seconds
        futures = {
            side: self._threads.submit(self._workers.run, side, mine, cell, device, seconds)
            for side, mine in sides.items()
        }
        while wait(futures.values(), _POLL).not_done:
            pass  # pytest-xdist, whose own end is gone, interrupts this thread between two waits, never in one
        found = {side: future.result() for side, future in futures.items()}
        if self._run.compared and "before" not in sides:
            found["before"] = Ran(
                cell=cell.id, status="refused", detail=self._run.absent.get(plan.op, "it is not there")
            )
        return found


def _load(ran: Ran) -> dict[str, Tensor]:
    if ran.status != "ok" or not ran.file:
        return {}
    found: dict[str, Tensor] = torch.load(ran.file, weights_only=True)
    return found


def _against(
    plan: Plan, cell: Cell, side: str, tensors: Mapping[str, Tensor], reference: Mapping[str, Tensor], ran: Ran
) -> Compared | None:
    """One side against the reference; None where that neither says of all that was returned that it is right, nor of anything
    that it is wrong.
    """
    if ran.status != "ok":
        return None
    exact = {name.removeprefix("ref64:"): tensor for name, tensor in reference.items() if name.startswith("ref64:")}
    findings: list[Finding] = []
    figures: list[Figures] = []
    for name, tensor in tensors.items():
        if name not in exact:
            continue
        comparison = against(
            tensor,
            exact[name],
            reference.get(f"ref32:{name}"),
            ran.tolerance or plan.tolerance,
            side=side,
            output=name,
            values=cell.values,
            short=reference.get(f"ref16:{name}"),
        )
        findings += comparison.findings
        figures.append(comparison.figures)
    if not findings and len(figures) < len(tensors):  # what it says is right, but it does not say all
        return None
    return Compared(tuple(findings), tuple(figures))


def _seconds(ran: Mapping[Side, Ran], whole: float) -> dict[str, float]:
    """The seconds of every side, by ``side.what``, and of the entire cell."""
    parts = {f"{side}.{what}": round(spent, 6) for side, item in ran.items() for what, spent in item.seconds.items()}
    return {**parts, "whole": round(whole, 6)}

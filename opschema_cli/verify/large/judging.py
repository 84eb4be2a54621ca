"""The verdict on a cell with a large tensor, from the answers of both sides."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.verify.compare import unlike_metadata
from opschema_cli.verify.judge import Compared, Judgement, judge
from opschema_cli.verify.large.tensors import BLOCK
from opschema_cli.verify.model import Cell, Finding, Ran, Returned
from opschema_cli.verify.worker_process import killed_from_outside

_OUT_OF_MEMORY = "out of memory"


def judge_large(cell: Cell, before: Ran | None, after: Ran) -> Judgement:
    """The verdict on a large cell. Too little memory or time is never a fault, and a size that is refused only where before ran."""
    for side, ran in (("after", after), ("before", before)):
        if ran is not None and (reason := not_run(ran)):
            return Judgement("not-checked", f"{side}: {reason.partition(chr(10))[0]}")
    ran_before = before is not None and before.status == "ok"
    if after.status == "raised" and not ran_before and not after.unimported:
        return Judgement("not-checked", f"after refuses a tensor of this size: {after.detail}")
    if after.status == "stalled" and not ran_before:
        return Judgement("not-checked", f"after: {after.detail.partition(chr(10))[0]}; --timeout sets the limit")
    compared = {side: Compared() for side, ran in (("before", before), ("after", after)) if ran and ran.agrees}
    parts = Ran(cell=cell.id, status="refused", detail=f"there is none for tensors of this size, and {after.detail}")
    verdict, reason, findings = judge(
        before, after, parts, differences=tuple(_differences(before, after)), compared=compared
    )
    more = after.detail if after.status == "ok" and after.agrees else ""
    return Judgement(verdict, "; ".join(filter(None, (reason, more))), findings)


def not_run(ran: Ran) -> str:
    """The reason why a side did not run the cell though nothing is wrong with it; empty if it did."""
    if ran.status == "refused" and not ran.absent:
        return ran.detail
    if ran.status == "died" and (ran.detail.startswith(_OUT_OF_MEMORY) or killed_from_outside(ran)):
        return ran.detail
    return ""


def _differences(before: Ran | None, after: Ran) -> Iterator[Finding]:
    """After's outputs against before's, by shape, dtype and the hashes of their blocks."""
    if before is None or before.status != "ok" or after.status != "ok":
        return
    earlier = {output.name: output for output in before.outputs}
    now = {output.name: output for output in after.outputs}
    for name in {**earlier, **now}:
        other = unlike_metadata(name, _described(earlier.get(name)), _described(now.get(name)))
        if other is not None:
            yield Finding(check=other[0], side="after", about=name, message=other[1])
            continue
        pairs = zip(before.blocks[name], after.blocks[name], strict=True)
        wrong = [number for number, (old, new) in enumerate(pairs) if old != new]
        if wrong:
            blocks = f"{len(wrong)} of {len(after.blocks[name])} blocks of {BLOCK:,} elements"
            message = f"`{name}`: {blocks} differ from before, the first from element {wrong[0] * BLOCK:,} on"
            yield Finding(check="bits", side="after", about=name, message=message)


def _described(output: Returned | None) -> tuple[tuple[int, ...], str] | None:
    return None if output is None else (output.shape, output.dtype)

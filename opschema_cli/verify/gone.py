"""What the tree before has and the tree after has not: nothing runs it, so nobody may take it for checked.

Rows may be relabelled, moved and change their form: ops are compared by name, what is run of them by dtype.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.phrases import count
from opschema_cli.verify.model import Cell, Plan


def mark_gone(plans: Sequence[Plan], earlier: Mapping[str, Plan], expected: Collection[str]) -> list[Plan]:
    """Plans that tell what is gone of them. ``earlier`` has the plans before by the names that ops have after, ``expected``
    names ops, or dtypes of ops (``Op[float16]``), that may be gone.
    """
    return [_marked(plan, earlier[plan.op], expected) if plan.op in earlier else plan for plan in plans]


def lost_plans(every: Collection[str], earlier: Sequence[Plan], expected: Collection[str]) -> Iterator[Plan]:
    """Plans for the ops that could be run before, but for those named ``every``, which are there still."""
    for plan in earlier:
        if plan.cells and plan.op not in every:
            told = {
                plan.op: f"gone: the tree after does not declare it, the tree before had {_size(plan)}; nothing was run"
            }
            yield _told(msgspec.structs.replace(plan, cells=(), unplanned={}, dtypes=(), left_out=0), told, expected)


def rows_gone(plan: Plan, earlier: Plan) -> int:
    """How many rows, each in a dtype, have shapes that no row has after. Names of inputs do not count."""
    lost = Counter(map(_form, _rows(earlier))) - Counter(map(_form, _rows(plan)))
    return lost.total() if plan.cells else 0


def _marked(plan: Plan, earlier: Plan, expected: Collection[str]) -> Plan:
    if not earlier.cells:
        return plan
    if not plan.cells:
        why = "; ".join(dict.fromkeys(plan.unplanned.values())) or "nothing of it can be run"
        told = {plan.op: f"gone: {why}; the tree before had {_size(earlier)}"}
        return _told(msgspec.structs.replace(plan, unplanned={}), told, expected)
    lost = [dtype for dtype in _dtypes(earlier) if dtype not in _dtypes(plan)]
    told = {f"{plan.op}[{dtype}]": f"gone: no row is run in {dtype}, as in the tree before" for dtype in lost}
    return _told(plan, told, expected)


def _told(plan: Plan, gone: Mapping[str, str], expected: Collection[str]) -> Plan:
    """The plan with what is gone; what may be gone is not checked."""
    fine = {name: f"{reason}; this was expected" for name, reason in gone.items() if {name, plan.op} & set(expected)}
    rest = {name: reason for name, reason in gone.items() if name not in fine}
    return msgspec.structs.replace(plan, unplanned={**plan.unplanned, **fine}, gone=rest)


def _dtypes(plan: Plan) -> tuple[str, ...]:
    return plan.dtypes or tuple(dict.fromkeys(cell.dtype for cell in plan.cells))


def _size(plan: Plan) -> str:
    return count(len(plan.cells), "cell")


def _rows(plan: Plan) -> Iterator[Cell]:
    return (cell for cell in plan.cells if cell.shape == "row" and cell == plain(cell))


def plain(cell: Cell) -> Cell:
    """The cell of the same shape with ordinary values."""
    return msgspec.structs.replace(cell, values="normal", layout="contiguous", seed=0, again=False)


def _form(cell: Cell) -> tuple[object, ...]:
    """Shapes and dtypes of what a cell passes, or returns if it passes nothing."""
    tensors = cell.call.inputs or cell.call.outputs
    return (cell.dtype, *sorted((str(tensor.dtype), str(tensor.shape)) for tensor in tensors))

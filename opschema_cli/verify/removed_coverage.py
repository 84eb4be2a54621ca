"""Cells of the tree before that the tree after no longer has: they cannot be run, and must not pass as checked.

Rows may be relabelled, moved and rewritten: ops are compared by name, and their cells by dtype.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.phrases import count
from opschema_cli.verify.model import Cell, Plan


def mark_removed(plans: Sequence[Plan], earlier: Mapping[str, Plan], expected: Collection[str]) -> list[Plan]:
    """The plans with their ``removed`` cells. ``earlier`` has the plans before by the names that ops have after, ``expected``
    names ops, or dtypes of ops (``Op[float16]``), that may be removed.
    """
    return [_marked(plan, earlier[plan.op], expected) if plan.op in earlier else plan for plan in plans]


def lost_plans(every: Collection[str], earlier: Sequence[Plan], expected: Collection[str]) -> Iterator[Plan]:
    """Plans for the ops that could be run before and are not among ``every``, the names of the ops after."""
    for plan in earlier:
        if (plan.cells or plan.search is not None) and plan.op not in every:
            had = f", the tree before had {_size(plan)}" if plan.cells else ""
            reason = f"removed: the tree after does not declare it{had}; nothing was run"
            empty = msgspec.structs.replace(plan, cells=(), unplanned={}, dtypes=(), left_out=0)
            yield _with_removed(empty, {plan.op: reason}, expected)


def rows_removed(plan: Plan, earlier: Plan) -> int:
    """The number of rows, each in a dtype, whose shapes no row has after. Names of inputs do not count."""
    lost = Counter(map(_form, _rows(earlier))) - Counter(map(_form, _rows(plan)))
    return lost.total() if plan.cells else 0


def _marked(plan: Plan, earlier: Plan, expected: Collection[str]) -> Plan:
    if not earlier.cells:
        return plan
    if not plan.cells:
        why = "; ".join(dict.fromkeys(plan.unplanned.values())) or "nothing of it can be run"
        removed = {plan.op: f"removed: {why}; the tree before had {_size(earlier)}"}
        return _with_removed(msgspec.structs.replace(plan, unplanned={}), removed, expected)
    lost = [dtype for dtype in _dtypes(earlier) if dtype not in _dtypes(plan)]
    removed = {f"{plan.op}[{dtype}]": f"removed: no row runs in {dtype}, unlike in the tree before" for dtype in lost}
    return _with_removed(plan, removed, expected)


def _with_removed(plan: Plan, removed: Mapping[str, str], expected: Collection[str]) -> Plan:
    """The plan with its ``removed`` cells; those that were ``expected`` are unplanned instead."""
    fine = {name: f"{reason}; this was expected" for name, reason in removed.items() if {name, plan.op} & set(expected)}
    rest = {name: reason for name, reason in removed.items() if name not in fine}
    return msgspec.structs.replace(plan, unplanned={**plan.unplanned, **fine}, removed=rest)


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
    """Return the shapes and dtypes of a cell's inputs, or of its outputs if it has no inputs."""
    tensors = cell.call.inputs or cell.call.outputs
    return (cell.dtype, *sorted((str(tensor.dtype), str(tensor.shape)) for tensor in tensors))

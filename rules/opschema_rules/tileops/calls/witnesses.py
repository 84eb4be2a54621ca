"""Values for the open parts of a workload row, so that it describes a call: sizes of dimensions, and shapes of inputs.

A value is taken where no rule speaks against it.
"""

from __future__ import annotations

from opschema_cli.schema.evaluate import Tensor as Bound
from opschema_cli.schema.outcomes import Unresolved, Violated
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.bindings import RESERVED_KEYS, BoundRow, bind_row
from opschema_rules.tileops.constraints import excluded_sizes
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import Equation, Statement, statement

SIZES = (6, 10, 14, 48, 80, 96, 64, 128, 256, 512, 4, 2, 1, 240, 384, 960, 1920)
"""Sizes that are tried for a dimension: distinct ones first, then those that are multiples of others."""

_RANKS = ((96, 160), (96, 160, 224), (96, 160, 224, 288), (96,), (), (1,), (1, 1))
"""Shapes to try for an input of which only rules are known."""

MAX_ROUNDS = 24
"""Maximum number of values to find for one row."""


def completed(entry: OpEntry, bound: BoundRow) -> BoundRow | None:
    """Return the row with values for its open inputs; the row itself if there are none, None if nothing fits.

    Statements about an output that contradict each other for all but equal sizes are left out: the code shows which is right.
    """
    stated = statement(entry)
    for _ in range(MAX_ROUNDS):
        open_inputs = _open_inputs(entry, bound)
        if not open_inputs:
            return bound
        found = _better(entry, bound, stated, open_inputs)
        if found is None:
            return None
        bound = found
    return None


def _fits(entry: OpEntry, before: BoundRow, bound: BoundRow, *, strict: bool) -> bool:
    """Whether a row violates no rule that it did not violate before; unless ``strict``, rules that determine the shape of an
    output do not count.
    """
    broken = _broken(bound) - _broken(before)
    if broken and (strict or not all(_gives_output(entry, bound, equation) for equation in broken)):
        return False
    return not _has_negative(entry, bound) and not any(excluded_sizes(entry, bound))


def _has_negative(entry: OpEntry, bound: BoundRow) -> bool:
    """Whether a size is negative that follows from the rules, as that of a convolution whose kernel exceeds its input."""
    named = [bound.values.get(name) for name in statement(entry).sizes]
    shapes = [value.shape for value in bound.values.values() if isinstance(value, Bound) and value.shape is not None]
    return any(type(size) is int and size < 0 for size in (*named, *(size for shape in shapes for size in shape)))


def _broken(bound: BoundRow) -> set[Equation]:
    return {equation for equation, outcome in bound.outcomes if isinstance(outcome, Violated)}


def _gives_output(entry: OpEntry, bound: BoundRow, equation: Equation) -> bool:
    """Whether an equation determines the shape of an output (`y.shape == ...`), in dimensions that the row does not give."""
    left = equation.expression.text.partition(" == ")[0]
    outputs = {f"{item.name}.shape" for item in entry.outputs if entry.input(item.name) is None}
    sizes = {use.name for use in equation.expression.names()} & statement(entry).symbols
    return left in outputs and not any(bound.row.value(name) for name in sizes)


def _open_inputs(entry: OpEntry, bound: BoundRow) -> list[str]:
    """The inputs that the row passes without a known shape, though some rule reads it."""
    read = {use.name for equation, _ in bound.outcomes for use in equation.expression.names()}
    values = ((item.name, bound.values.get(item.name)) for item in entry.inputs if item.name in read)
    return [name for name, value in values if isinstance(value, Bound) and value.shape is None]


def _better(entry: OpEntry, bound: BoundRow, stated: Statement, open_inputs: list[str]) -> BoundRow | None:
    """The row with one more value."""
    name = _open_size(bound, stated, open_inputs)
    if name is not None:
        found = _with_size(entry, bound, name)
        if found is not None:
            return found
    known = (bound.values.get(item.name) for item in entry.inputs)
    shapes = dict.fromkeys(value.shape for value in known if isinstance(value, Bound) and value.shape is not None)
    rows = (
        _with(entry, bound, f"{tensor}_shape", list(shape)) for tensor in open_inputs for shape in (*shapes, *_RANKS)
    )
    return next((row for row in rows if _fits(entry, bound, row, strict=True)), None)


def _with_size(entry: OpEntry, bound: BoundRow, name: str) -> BoundRow | None:
    """Return the row with a size for a dimension, if possible one that no other has."""
    used = {value for value in bound.values.values() if type(value) is int}
    distinct = [size for size in (*SIZES, *(2 * size for size in used)) if size not in used]
    rows = [_with(entry, bound, name, size) for size in distinct[:1]]
    if rows and _fits(entry, bound, rows[0], strict=False):
        return rows[0]
    later = (_with(entry, bound, name, size) for size in (*distinct[1:], *sorted(used.intersection(SIZES))))
    return next((row for row in later if _fits(entry, bound, row, strict=True)), None)


def _open_size(bound: BoundRow, stated: Statement, open_inputs: list[str]) -> str | None:
    """A dimension without a size on which the shape of an input depends."""
    waiting = {f"{name}.shape" for name in open_inputs}
    for _, outcome in bound.outcomes:
        if isinstance(outcome, Unresolved) and waiting.intersection(outcome.names):
            names = (name for name in outcome.names if name in stated.symbols and name not in RESERVED_KEYS)
            found = next(names, None)
            if found is not None:
                return found
    return None


def _with(entry: OpEntry, bound: BoundRow, key: str, value: Data) -> BoundRow:
    """The row with one more value, bound."""
    return bind_row(entry, Row(bound.row.index, bound.row.node, {**bound.row.data, key: value}))

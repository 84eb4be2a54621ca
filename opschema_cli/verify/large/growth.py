"""Plans a call with a tensor of more than 2³¹ elements, from two calls that differ in one size. No torch here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import msgspec

from opschema_cli.verify.cells import Case
from opschema_cli.verify.model import LARGE, Call, Cell, Growth, Input, Plan

ELEMENTS = 1 << 31
"""The number of elements that does not fit a signed integer of 32 bits."""

ONE_BYTE = ("int8", "uint8", "bool", "float8_e4m3fn")
"""The dtypes in which such a tensor needs least memory."""

_SHAPES = ("odd", "larger", "row", "one-row", "tail-1", "one-column", "long")
"""Shapes that a call is extrapolated from; first those in which the leading size changes."""
_BEYOND = 3
_STEPS = 64

Accepts = Callable[[Call], str]
"""Returns why an operator refuses a call; empty if it accepts it."""


def with_large_tensor(
    plan: Plan, cases: Sequence[Case], accepts: Accepts | None = None, elements: int = ELEMENTS
) -> Plan:
    """The plan with a cell in which a tensor has more than ``elements`` elements; else with the reason why it has none.

    Of the dtypes of the plan's cases that with the fewest bytes is taken; with ``accepts`` those of one byte are tried, too.
    """
    found: dict[str, Cell] = {}
    for case in cases:
        growth = _growth(case.calls) if case.dtype not in found else None
        cell = _large(case, growth, elements) if growth is not None else None
        if cell is not None and growth is not None:
            narrow = None if accepts is None or found else _narrowed(case, growth, accepts)
            found[case.dtype] = (narrow and _large(case, narrow, elements)) or cell
    if found:
        least = min(found.values(), key=lambda cell: sum(map(size_in_bytes, cell.call.inputs)))
        return msgspec.structs.replace(plan, cells=(*plan.cells, least))
    if not cases:
        return plan
    reason = f"no size of its calls can be raised until a tensor has {elements:,} elements"
    return msgspec.structs.replace(plan, unplanned={**plan.unplanned, f"{plan.op}[{LARGE}]": reason})


def call_at(growth: Growth, size: int) -> Call | None:
    """Return the call at a size, by linear extrapolation of all numbers that differ, or None if one of them would be negative or
    not an integer.
    """
    fewer, more = (msgspec.to_builtins(call) for call in (growth.fewer, growth.more))
    try:
        return msgspec.convert(_at(fewer, more, growth, size), type=Call)
    except ValueError:
        return None


def size_of(growth: Growth, call: Call) -> int:
    """The size of a call of a growth."""
    start, end = growth.sizes
    for fewer, more, spec in zip(growth.fewer.inputs, growth.more.inputs, call.inputs, strict=True):
        for small, large, own in zip(fewer.shape, more.shape, spec.shape, strict=True):
            if small != large:
                return start + (own - small) * (end - start) // (large - small)
    return end


def most_elements(call: Call) -> int:
    """The elements of the largest tensor whose shape is known."""
    shapes = [*(item.shape for item in call.inputs), *(item.shape for item in call.outputs)]
    return max(math.prod(shape) for shape in shapes if shape is not None)


def size_in_bytes(tensor: Input) -> int:
    """The bytes of an input."""
    digits = re.sub(r"[^0-9]", "", tensor.dtype.partition("_")[0])
    return math.prod(tensor.shape) * int(digits or 8) // 8


def _growth(calls: Mapping[str, Call]) -> Growth | None:
    """Two calls that differ in one size, and in nothing that does not follow from it."""
    shapes = sorted((shape for shape in calls if shape in _SHAPES), key=_SHAPES.index)
    pairs = sorted(permutations(shapes, 2), key=lambda pair: pair[1] not in ("larger", "long"))
    return next(filter(None, (_between(calls[fewer], calls[more]) for fewer, more in pairs)), None)


def _between(fewer: Call, more: Call) -> Growth | None:
    sizes = [
        (small, large)
        for one, other in zip(fewer.inputs, more.inputs, strict=False)
        if len(one.shape) == len(other.shape)
        for small, large in zip(one.shape, other.shape, strict=True)
        if small != large
    ]
    if not sizes or any(not 0 < small < large for small, large in sizes):
        return None
    growth = Growth(fewer=fewer, more=more, sizes=min(sizes))
    return growth if call_at(growth, 3 * growth.sizes[1] - 2 * growth.sizes[0]) is not None else None


def _narrowed(case: Case, growth: Growth, accepts: Accepts) -> Growth | None:
    """Return the accepted growth in a one-byte dtype, or None if there is none."""
    for dtype in ONE_BYTE:
        kinds = {item.name: dtype for item in growth.fewer.inputs if item.dtype == case.dtype}
        narrow = _in_dtypes(growth, kinds)
        if kinds and not accepts(narrow.fewer) and not accepts(narrow.more):
            return narrow
    return None


def _in_dtypes(growth: Growth, kinds: Mapping[str, str]) -> Growth:
    def changed(call: Call) -> Call:
        inputs = tuple(msgspec.structs.replace(item, dtype=kinds.get(item.name, item.dtype)) for item in call.inputs)
        return msgspec.structs.replace(call, inputs=inputs)

    return msgspec.structs.replace(growth, fewer=changed(growth.fewer), more=changed(growth.more))


def _large(case: Case, growth: Growth, elements: int) -> Cell | None:
    """The cell of a growth, a little beyond the size from which on a tensor has so many elements."""
    low = high = growth.sizes[1]
    for _ in range(_STEPS):
        if _largest(growth, high) > elements:
            break
        high *= 2
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _largest(growth, middle) > elements else (middle, high)
    sizes = range(high + _BEYOND, high + _BEYOND + _STEPS)
    call = next((found for size in sizes if (found := call_at(growth, size)) is not None), None)
    if call is None:
        return None
    kinds = {item.dtype for item in call.inputs}
    dtype = case.dtype if case.dtype in kinds else call.inputs[0].dtype
    return Cell(op=case.op, row=case.row, dtype=dtype, shape=LARGE, call=call, growth=growth)


def _largest(growth: Growth, size: int) -> int:
    """The elements of the largest tensor at about this size."""
    near = (call_at(growth, other) for other in range(size, size + _STEPS))
    call = next((found for found in near if found is not None), None)
    return 0 if call is None else most_elements(call)


def _at(fewer: object, more: object, growth: Growth, size: int) -> object:
    """Interpolate or extrapolate a value. Raises ValueError if both values are of different kinds, or there is no such value."""
    if fewer == more:
        return more
    if isinstance(fewer, dict) and isinstance(more, dict) and fewer.keys() == more.keys():
        return {key: _at(fewer[key], more[key], growth, size) for key in fewer}
    if isinstance(fewer, list | tuple) and isinstance(more, list | tuple) and len(fewer) == len(more):
        return type(more)(_at(one, other, growth, size) for one, other in zip(fewer, more, strict=True))
    if isinstance(fewer, int | float) and isinstance(more, int | float) and not isinstance(fewer, bool):
        start, end = growth.sizes
        value, rest = divmod((more - fewer) * (size - start), end - start)
        if not rest and fewer + value >= 0:
            return int(fewer + value)
    raise ValueError("these calls differ in more than numbers")

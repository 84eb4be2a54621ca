"""Linear expressions of one unknown."""

from __future__ import annotations

import msgspec


class Line(msgspec.Struct, frozen=True):
    """``slope * name + offset``; no name where the slope is 0."""

    name: str
    slope: int
    offset: int


def plus(left: Line | None, right: Line | None) -> Line | None:
    """The sum; None if it has two unknowns."""
    if left is None or right is None or (left.name and right.name and left.name != right.name):
        return None
    return Line(left.name or right.name, left.slope + right.slope, left.offset + right.offset)


def times(left: Line | None, right: Line | None) -> Line | None:
    """The product; None if it is not linear, or its numbers are too large."""
    if left is None or right is None or (left.name and right.name):
        return None
    line, factor = (left, right.offset) if left.name else (right, left.offset)
    if max(abs(line.slope), abs(line.offset), abs(factor)).bit_length() > 256:
        return None
    return Line(line.name, line.slope * factor, line.offset * factor)

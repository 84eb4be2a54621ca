"""Shapes of new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from opschema_cli.evaluation.tensors.sizes import Shape, listed, require


def sized(tensors: Sequence[Shape], *, size: int | Sequence[int]) -> Shape:
    """Return the size."""
    found = listed(size)
    require(all(item >= 0 for item in found), f"negative size in {list(found)}")
    return found


def stepped(tensors: Sequence[Shape], *, end: float, start: float = 0, step: float = 1) -> Shape:
    """One dimension with as many elements as there are steps from ``start`` to ``end``."""
    require(step != 0, "step must be nonzero")
    require((end - start) * step >= 0, "upper bound and lower bound inconsistent with step sign")
    return (ceil((end - start) / step),)


def spaced(tensors: Sequence[Shape], *, steps: int) -> Shape:
    """One dimension with the given number of elements."""
    require(steps >= 0, "number of steps must be non-negative")
    return (steps,)


def square(tensors: Sequence[Shape], *, n: int) -> Shape:
    """``[n, n]``."""
    return rectangle(tensors, n=n, m=n)


def rectangle(tensors: Sequence[Shape], *, n: int, m: int) -> Shape:
    """``[n, m]``."""
    require(n >= 0 and m >= 0, "n and m must not be negative")
    return (n, m)


def counted(tensors: Sequence[Shape], *, n: int) -> Shape:
    """``[n]``."""
    require(n >= 0, "n must be non-negative")
    return (n,)


def window(tensors: Sequence[Shape], *, window_length: int) -> Shape:
    """``[window_length]``."""
    require(window_length >= 0, "window_length must be non-negative")
    return (window_length,)

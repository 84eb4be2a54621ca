"""Shapes of reductions."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.tensors.sizes import Shape, axes, axis, broadcast, listed, refuse, require


def total(tensors: Sequence[Shape]) -> Shape:
    """No dimensions: everything is reduced."""
    return ()


def total_of_some(tensors: Sequence[Shape]) -> Shape:
    """No dimensions; there must be elements."""
    require(0 not in tensors[0], "the input has no elements")
    return ()


def reduced(
    tensors: Sequence[Shape], *, dim: int | Sequence[int] | None, keepdim: bool = False, unbiased: bool = False
) -> Shape:
    """The shape without the reduced dimensions, or with 1 for each; all are reduced if none is given."""
    shape = tensors[0]
    found = axes(listed(dim), len(shape)) if dim is not None else []
    if not found:
        found = list(range(len(shape)))
    return without(shape, found, keepdim)


def reduced_exactly(tensors: Sequence[Shape], *, dim: int | Sequence[int] | None, keepdim: bool = False) -> Shape:
    """As reduced, but an empty list reduces nothing."""
    places = range(len(tensors[0])) if dim is None else axes(listed(dim), len(tensors[0]))
    return without(tensors[0], list(places), keepdim)


def reduced_of_some(tensors: Sequence[Shape], *, dim: int | Sequence[int] | None, keepdim: bool = False) -> Shape:
    """The shape without the reduced dimensions, each of which has elements."""
    shape = tensors[0]
    found = reduced(tensors, dim=dim, keepdim=keepdim)
    places = axes(listed(dim), len(shape)) if dim is not None else []
    if any(shape and shape[place] == 0 for place in places):
        refuse("the reduced dimension has no elements", "IndexError")
    require(bool(places) or 0 not in shape, "the input has no elements")
    return found


def without(shape: Shape, places: Sequence[int], keepdim: bool) -> Shape:
    """A shape without some dimensions, or with 1 for each."""
    if keepdim:
        return tuple(1 if place in places else size for place, size in enumerate(shape))
    return tuple(size for place, size in enumerate(shape) if place not in places)


def largest(tensors: Sequence[Shape], *, k: int, dim: int) -> Shape:
    """The shape with ``k`` elements in one dimension."""
    shape = tensors[0]
    place = axis(dim, len(shape))
    require(0 <= k <= (shape[place] if shape else 1), "selected index k out of range")
    return (*shape[:place], k, *shape[place + 1 :]) if shape else ()


def compared(tensors: Sequence[Shape], *, dim: int, keepdim: bool = False) -> Shape:
    """The broadcast shape of the tensors without one dimension."""
    shape = broadcast(tensors)
    return without(shape, [axis(dim, len(shape))], keepdim)

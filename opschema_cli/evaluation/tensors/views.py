"""Shapes of views, copies and rearrangements of one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opschema_cli.evaluation.tensors.sizes import (
    OpenSizeError,
    Shape,
    axes,
    axis,
    broadcast,
    fitted,
    listed,
    refuse,
    require,
)


def reshaped(tensors: Sequence[Shape], *, size: int | Sequence[int]) -> Shape:
    """The size, with the same number of elements."""
    return fitted(tensors[0], listed(size))


def like_second(tensors: Sequence[Shape]) -> Shape:
    """The shape of the second tensor, with the same number of elements."""
    return fitted(tensors[0], tensors[1])


def expanded_like_second(tensors: Sequence[Shape]) -> Shape:
    """The shape of the second tensor, which the first one is broadcast to."""
    return expanded(tensors, size=tensors[1])


def expanded(tensors: Sequence[Shape], *, size: int | Sequence[int]) -> Shape:
    """The size that the tensor is broadcast to; -1 keeps a dimension."""
    shape, size = tensors[0], listed(size)
    new = len(size) - len(shape)
    require(new >= 0, "the number of sizes must be greater or equal to the number of dimensions")
    found = tuple(shape[place - new] if item == -1 and place >= new else item for place, item in enumerate(size))
    require(all(item >= 0 for item in found), f"invalid size in {list(size)}")
    require(all(old in (1, now) for old, now in zip(shape, found[new:], strict=True)), f"cannot expand to {list(size)}")
    return found


def flattened(tensors: Sequence[Shape], *, start_dim: int, end_dim: int) -> Shape:
    """The shape with the dimensions from ``start_dim`` to ``end_dim`` as one."""
    shape = tensors[0]
    start, end = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    require(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim")
    return (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :])


def raveled(tensors: Sequence[Shape]) -> Shape:
    """One dimension."""
    return (prod(tensors[0]),)


def unflattened(tensors: Sequence[Shape], *, dim: int, sizes: Sequence[int]) -> Shape:
    """The shape with one dimension as several."""
    shape = tensors[0]
    require(bool(shape) and bool(sizes), "unflatten: sizes must be non-empty")
    place = axis(dim, len(shape))
    return (*shape[:place], *fitted((shape[place],), tuple(sizes)), *shape[place + 1 :])


def repeated_by(tensors: Sequence[Shape], *, repeats: int | Sequence[int]) -> Shape:
    """Each size times its repeats; more repeats than dimensions add dimensions in front."""
    shape, counts = tensors[0], listed(repeats)
    require(len(counts) >= len(shape), "the number of dimensions of repeats is smaller than that of the tensor")
    require(all(item >= 0 for item in counts), "repeats must not be negative")
    shape = (1,) * (len(counts) - len(shape)) + shape
    return tuple(size * count for size, count in zip(shape, counts, strict=True))


def tiled(tensors: Sequence[Shape], *, dims: int | Sequence[int]) -> Shape:
    """As repeated, with fewer repeats than dimensions allowed."""
    counts = listed(dims)
    if any(count < 0 for count in counts):
        raise OpenSizeError("negative repeats")
    return repeated_by(tensors, repeats=(1,) * (len(tensors[0]) - len(counts)) + counts)


def interleaved(tensors: Sequence[Shape], *, repeats: int, dim: int | None = None) -> Shape:
    """One size times the repeats; without a dimension the tensor is flattened."""
    require(repeats >= 0, "repeats must not be negative")
    shape = tensors[0]
    if dim is None:
        return (prod(shape) * repeats,)
    place = axis(dim, len(shape))
    return (*shape[:place], shape[place] * repeats, *shape[place + 1 :]) if shape else (repeats,)


def permuted(tensors: Sequence[Shape], *, dims: int | Sequence[int]) -> Shape:
    """The sizes in the order of ``dims``."""
    shape = tensors[0]
    require(len(listed(dims)) == len(shape), "permute: the number of dimensions does not match")
    return tuple(shape[place] for place in axes(listed(dims), len(shape)))


def transposed(tensors: Sequence[Shape], *, dim0: int, dim1: int) -> Shape:
    """The shape with two dimensions swapped."""
    shape = list(tensors[0])
    first, second = axis(dim0, len(shape)), axis(dim1, len(shape))
    if shape:
        shape[first], shape[second] = shape[second], shape[first]
    return tuple(shape)


def matrix_transposed(tensors: Sequence[Shape]) -> Shape:
    """A matrix with its dimensions swapped; vectors and scalars are kept."""
    require(len(tensors[0]) <= 2, "t() expects a tensor with <= 2 dimensions")
    return tensors[0][::-1]


def matrices_transposed(tensors: Sequence[Shape]) -> Shape:
    """The last two dimensions swapped."""
    shape = tensors[0]
    require(len(shape) >= 2, "only tensors with 2 or more dimensions")
    return (*shape[:-2], shape[-1], shape[-2])


def moved(tensors: Sequence[Shape], *, source: int | Sequence[int], destination: int | Sequence[int]) -> Shape:
    """The shape with dimensions moved to other places."""
    shape = tensors[0]
    require(len(listed(source)) == len(listed(destination)), "movedim: source and destination differ in length")
    old, new = axes(listed(source), len(shape)), axes(listed(destination), len(shape))
    if not shape:
        return shape
    rest = iter([place for place in range(len(shape)) if place not in old])
    goes = dict(zip(new, old, strict=True))
    return tuple(shape[goes[place] if place in goes else next(rest)] for place in range(len(shape)))


def squeezed(tensors: Sequence[Shape]) -> Shape:
    """The shape without its dimensions of size 1."""
    return tuple(size for size in tensors[0] if size != 1)


def squeezed_at(tensors: Sequence[Shape], *, dim: int | Sequence[int]) -> Shape:
    """The shape without these dimensions, where they have size 1."""
    shape = tensors[0]
    places = axes(listed(dim), len(shape))
    return tuple(size for place, size in enumerate(shape) if size != 1 or place not in places)


def unsqueezed(tensors: Sequence[Shape], *, dim: int) -> Shape:
    """The shape with a dimension of size 1 more."""
    shape = tensors[0]
    place = axis(dim, len(shape) + 1)
    return (*shape[:place], 1, *shape[place:])


def selected(tensors: Sequence[Shape], *, dim: int, index: int) -> Shape:
    """The shape without the dimension from which one index is taken."""
    shape = tensors[0]
    if not shape:
        refuse("select() cannot be applied to a 0-dim tensor", "IndexError")
    place = axis(dim, len(shape))
    if not -shape[place] <= index < shape[place]:
        refuse("select(): index out of range", "IndexError")
    return (*shape[:place], *shape[place + 1 :])


def narrowed(tensors: Sequence[Shape], *, dim: int, start: int, length: int) -> Shape:
    """The shape with ``length`` elements of one dimension."""
    shape = tensors[0]
    require(bool(shape), "narrow() cannot be applied to a 0-dim tensor")
    require(length >= 0, "narrow(): length must be non-negative")
    place = axis(dim, len(shape))
    size = shape[place]
    if not -size <= start <= size:
        refuse("narrow(): start out of range", "IndexError")
    start = start + size if start < 0 else start
    require(start + length <= size, "narrow(): start + length exceeds the dimension size")
    return (*shape[:place], length, *shape[place + 1 :])


def diagonal(tensors: Sequence[Shape], *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Shape:
    """The shape with two dimensions replaced by their diagonal, at the end."""
    shape = tensors[0]
    first, second = axis(dim1, len(shape)), axis(dim2, len(shape))
    require(first != second and len(shape) >= 2, "diagonal dimensions cannot be identical")
    rows, columns = shape[first] + min(offset, 0), shape[second] - max(offset, 0)
    rest = (size for place, size in enumerate(shape) if place not in (first, second))
    return (*rest, max(min(rows, columns), 0))


def windows(tensors: Sequence[Shape], *, dimension: int, size: int, step: int) -> Shape:
    """Windows along one dimension, with a new last dimension."""
    shape = tensors[0]
    place = axis(dimension, len(shape))
    length = shape[place] if shape else 1
    require(0 <= size <= length and step > 0, "unfold: size or step is out of range")
    count = (length - size) // step + 1
    return (*shape[:place], count, *shape[place + 1 :], size) if shape else (size,)


def triangular(tensors: Sequence[Shape], *, diagonal: int = 0) -> Shape:
    """A matrix of a vector's elements in a diagonal, or the diagonal of a matrix."""
    shape = tensors[0]
    require(len(shape) in (1, 2), "diag(): supports 1D or 2D tensors")
    if len(shape) == 1:
        return (shape[0] + abs(diagonal),) * 2
    rows, columns = shape[0] + min(diagonal, 0), shape[1] - max(diagonal, 0)
    return (max(min(rows, columns), 0),)


def all_broadcast(tensors: Sequence[Shape]) -> list[Shape]:
    """The broadcast shape for each tensor."""
    return [broadcast(tensors)] * len(tensors)

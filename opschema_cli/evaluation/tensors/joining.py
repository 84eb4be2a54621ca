"""Shapes of joined and divided tensors."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.tensors.sizes import Shape, axis, listed, parts, require


def concatenated(tensors: Sequence[Shape], *, dim: int = 0) -> Shape:
    """The tensors one after another in one dimension; empty vectors are skipped."""
    require(bool(tensors), "torch.cat(): expected a non-empty list of tensors")
    require(() not in tensors, "zero-dimensional tensor cannot be concatenated")
    shapes = [shape for shape in tensors if shape != (0,)] or [(0,)]
    place = axis(dim, len(shapes[0]))
    rests = {(*shape[:place], *shape[place + 1 :]) for shape in shapes if len(shape) == len(shapes[0])}
    require(len(rests) == 1 and len({len(shape) for shape in shapes}) == 1, "sizes of tensors must match")
    return (*shapes[0][:place], sum(shape[place] for shape in shapes), *shapes[0][place + 1 :])


def stacked(tensors: Sequence[Shape], *, dim: int = 0) -> Shape:
    """The tensors in a new dimension."""
    require(bool(tensors), "stack expects a non-empty list of tensors")
    require(len(set(tensors)) == 1, "stack expects each tensor to be equal size")
    place = axis(dim, len(tensors[0]) + 1)
    return (*tensors[0][:place], len(tensors), *tensors[0][place:])


def vertical(tensors: Sequence[Shape]) -> Shape:
    """The tensors as rows, or their rows one after another."""
    return concatenated([(1, *(shape or (1,))) if len(shape) < 2 else shape for shape in tensors])


def horizontal(tensors: Sequence[Shape]) -> Shape:
    """The columns of the tensors one after another."""
    shapes = [shape or (1,) for shape in tensors]
    return concatenated(shapes, dim=0 if shapes and len(shapes[0]) == 1 else 1)


def chunked(tensors: Sequence[Shape], *, chunks: int, dim: int) -> list[Shape]:
    """At most ``chunks`` parts of one dimension."""
    shape = tensors[0]
    require(bool(shape) and chunks > 0, "chunk expects at least a 1-dimensional tensor and chunks > 0")
    place = axis(dim, len(shape))
    if shape[place] == 0:
        return [shape] * parts(chunks)
    return divided(tensors, split_size=-(-shape[place] // chunks), dim=dim)


def divided(tensors: Sequence[Shape], *, split_size: int | Sequence[int], dim: int) -> list[Shape]:
    """Parts of one dimension, of one size or of several."""
    shape = tensors[0]
    if not isinstance(split_size, int):
        return divided_by(tensors, split_sizes=split_size, dim=dim)
    require(bool(shape) and split_size >= 0, "split expects at least a 1-dimensional tensor")
    place = axis(dim, len(shape))
    length = shape[place]
    require(split_size > 0 or length == 0, "split_size can only be 0 if the dimension is")
    if split_size == 0 or length == 0:
        return [shape]
    parts(length // split_size)
    sizes = [min(split_size, length - start) for start in range(0, length, split_size)]
    return _parts(shape, place, sizes)


def divided_by(tensors: Sequence[Shape], *, split_sizes: Sequence[int], dim: int) -> list[Shape]:
    """Parts of these sizes of one dimension."""
    shape = tensors[0]
    require(bool(shape), "split expects at least a 1-dimensional tensor")
    place = axis(dim, len(shape))
    sizes = listed(split_sizes)
    require(sum(sizes) == shape[place] and all(size >= 0 for size in sizes), "split_sizes do not sum to the size")
    return _parts(shape, place, sizes)


def divided_evenly(tensors: Sequence[Shape], *, sections: int, dim: int) -> list[Shape]:
    """``sections`` parts whose sizes differ by one at most."""
    shape = tensors[0]
    require(bool(shape) and sections > 0, "tensor_split expects at least a 1-dimensional tensor")
    place = axis(dim, len(shape))
    size, more = divmod(shape[place], sections)
    return _parts(shape, place, [size + (index < more) for index in range(parts(sections))])


def unbound(tensors: Sequence[Shape], *, dim: int) -> list[Shape]:
    """Each index of one dimension as a tensor."""
    shape = tensors[0]
    require(bool(shape), "unbind() cannot be applied to a 0-dim tensor")
    place = axis(dim, len(shape))
    return [(*shape[:place], *shape[place + 1 :])] * parts(shape[place])


def _parts(shape: Shape, place: int, sizes: Sequence[int]) -> list[Shape]:
    return [(*shape[:place], size, *shape[place + 1 :]) for size in sizes]

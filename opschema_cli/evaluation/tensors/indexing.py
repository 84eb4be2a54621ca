"""Shapes of elements selected by index tensors."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.tensors.sizes import OpenSizeError, Shape, axis, require


def gathered(tensors: Sequence[Shape], *, dim: int) -> Shape:
    """The shape of the index, which is not larger than the input in the other dimensions."""
    shape, index = (item or (1,) for item in tensors[:2])
    place = axis(dim, len(shape))
    if 0 not in index:
        require(len(shape) == len(index), "the index must have as many dimensions as the input")
        fits = all(a <= b for at, (a, b) in enumerate(zip(index, shape, strict=True)) if at != place)
        require(fits, f"size of index {index} does not fit the input {shape}")
    return tensors[1]


def indexed(tensors: Sequence[Shape], *, dim: int) -> Shape:
    """The shape with one dimension replaced by an index vector."""
    shape, index = tensors[:2]
    place = axis(dim, len(shape))
    require(len(index) <= 1, "index_select(): the index is a vector")
    count = index[0] if index else 1
    if not shape:
        require(count == 1, "index_select(): the index of a scalar has one element")
        return ()
    return (*shape[:place], count, *shape[place + 1 :])


def like_index(tensors: Sequence[Shape]) -> Shape:
    """The shape of the second tensor, the index."""
    return tensors[1]


def embedded(tensors: Sequence[Shape]) -> Shape:
    """Rows of a matrix, the first tensor, for each index of the second."""
    require(len(tensors[0]) == 2, "'weight' must be 2-D")
    return (*tensors[1], tensors[0][1])


def embedded_second(tensors: Sequence[Shape]) -> Shape:
    """Rows of a matrix, the second tensor, for each index of the first."""
    return embedded((tensors[1], tensors[0]))


def one_hot(tensors: Sequence[Shape], *, num_classes: int) -> Shape:
    """A last dimension of as many classes."""
    if num_classes == -1:
        raise OpenSizeError("the number of classes depends on the elements")
    require(num_classes > 0, "the number of classes is not positive")
    return (*tensors[0], num_classes)

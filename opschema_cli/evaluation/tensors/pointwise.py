"""Shapes of functions that keep their input's shape, or broadcast their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.tensors.sizes import Shape, axes, axis, broadcast, listed, require


def same(tensors: Sequence[Shape]) -> Shape:
    """The shape of the first tensor."""
    return tensors[0]


def same_with_dim(tensors: Sequence[Shape], *, dim: int | None) -> Shape:
    """The shape of the first tensor, which has the dimension."""
    if dim is not None:
        axis(dim, len(tensors[0]))
    return tensors[0]


def same_with_dims(tensors: Sequence[Shape], *, dims: int | Sequence[int]) -> Shape:
    """The shape of the first tensor, which has the dimensions."""
    axes(listed(dims), len(tensors[0]))
    return tensors[0]


def same_matrices(tensors: Sequence[Shape]) -> Shape:
    """The shape of the first tensor, which has two dimensions or more."""
    require(len(tensors[0]) >= 2, "the input must have at least 2 dimensions")
    return tensors[0]


def broadcasted(tensors: Sequence[Shape]) -> Shape:
    """The shape that all tensors are broadcast to."""
    return broadcast(tensors)


def kept(tensors: Sequence[Shape]) -> Shape:
    """The shape of the first tensor, which the others are broadcast to."""
    require(broadcast(tensors) == tensors[0], f"output with shape {list(tensors[0])} doesn't match the broadcast shape")
    return tensors[0]


def normalized(tensors: Sequence[Shape], *, normalized_shape: Sequence[int]) -> Shape:
    """The shape of the first tensor, whose last dimensions are ``normalized_shape``; weights have the same."""
    size = listed(normalized_shape)
    require(bool(size) and tensors[0][-len(size) :] == size, f"the input does not end with {list(size)}")
    require(all(item == size for item in tensors[1:]), f"the weight or bias is not of shape {list(size)}")
    return tensors[0]

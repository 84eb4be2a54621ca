"""Shapes of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.tensors.sizes import Shape, broadcast, require


def matrix_product(tensors: Sequence[Shape]) -> Shape:
    """``[M, K] x [K, N]``."""
    first, second = tensors[0], tensors[1]
    require(len(first) == len(second) == 2, "mm: both tensors must be matrices")
    require(first[1] == second[0], f"mat1 and mat2 shapes cannot be multiplied ({first} and {second})")
    return (first[0], second[1])


def batched_product(tensors: Sequence[Shape]) -> Shape:
    """``[B, M, K] x [B, K, N]``."""
    first, second = tensors[0], tensors[1]
    require(len(first) == len(second) == 3, "bmm: batch1 and batch2 must be 3D tensors")
    require(first[0] == second[0] and first[2] == second[1], f"batches do not match: {first} and {second}")
    return (first[0], first[1], second[2])


def vector_product(tensors: Sequence[Shape]) -> Shape:
    """``[M, K] x [K]``."""
    first, second = tensors[0], tensors[1]
    require(len(first) == 2 and len(second) == 1 and first[1] == second[0], f"size mismatch: {first} and {second}")
    return (first[0],)


def scalar_product(tensors: Sequence[Shape]) -> Shape:
    """``[K] x [K]``."""
    require(len(tensors[0]) == len(tensors[1]) == 1, "1D tensors expected")
    require(tensors[0] == tensors[1], "inconsistent tensor size")
    return ()


def outer_product(tensors: Sequence[Shape]) -> Shape:
    """``[M] x [N]``."""
    require(len(tensors[0]) == len(tensors[1]) == 1, "outer: expected 1-D tensors")
    return (*tensors[0], *tensors[1])


def general_product(tensors: Sequence[Shape]) -> Shape:
    """Matrices in the last two dimensions with the others broadcast; vectors lose their dimension."""
    first, second = tensors[0], tensors[1]
    require(bool(first) and bool(second), "both arguments to matmul need to be at least 1D")
    left = first if len(first) > 1 else (1, *first)
    right = second if len(second) > 1 else (*second, 1)
    require(left[-1] == right[-2], f"shapes cannot be multiplied ({first} and {second})")
    rows = left[-2:-1] if len(first) > 1 else ()
    columns = right[-1:] if len(second) > 1 else ()
    return (*broadcast((left[:-2], right[:-2])), *rows, *columns)


def _added(tensors: Sequence[Shape], product: Shape) -> Shape:
    require(broadcast((tensors[0], product)) == product, f"{tensors[0]} cannot be expanded to {product}")
    return product


def added_matrix_product(tensors: Sequence[Shape]) -> Shape:
    """A tensor that is broadcast to the product of two matrices."""
    return _added(tensors, matrix_product(tensors[1:]))


def added_batched_product(tensors: Sequence[Shape]) -> Shape:
    """A tensor that is broadcast to the products of two batches."""
    return _added(tensors, batched_product(tensors[1:]))


def added_vector_product(tensors: Sequence[Shape]) -> Shape:
    """A tensor that is broadcast to the product of a matrix and a vector."""
    return _added(tensors, vector_product(tensors[1:]))


def linear(tensors: Sequence[Shape]) -> Shape:
    """``[*, K] x [N, K]``, with a bias ``[N]``."""
    first, weight = tensors[0], tensors[1]
    product = general_product((first, weight[::-1] if len(weight) < 3 else weight))
    require(len(weight) < 3, "linear: the weight has more than 2 dimensions")
    if len(tensors) > 2:
        require(broadcast((tensors[2], product)) == product, f"the bias {tensors[2]} cannot be expanded to {product}")
    return product


def attention(tensors: Sequence[Shape]) -> Shape:
    """``[*, L, E]``, ``[*, S, E]`` and ``[*, S, V]`` to ``[*, L, V]``."""
    query, value = tensors[0], tensors[2]
    require(min(map(len, tensors[:3])) >= 2, "attention: tensors need two dimensions or more")
    return (*query[:-1], value[-1])

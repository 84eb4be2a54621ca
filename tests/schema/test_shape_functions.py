"""Broadcasting and reduction: torch's and TileOPs' answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from opschema_cli.schema.evaluate import Tensor
from opschema_cli.schema.shape_functions import (
    broadcast_shapes,
    dim_range_validity,
    dim_uniqueness,
    is_broadcastable_to,
    reduced_axes,
    reduced_shape,
)

X = Tensor((2, 3, 4), "x")
Dim = int | Sequence[int] | None


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([], ()),
        ([()], ()),
        ([(), (3,)], (3,)),
        ([(3, 1), (1, 4)], (3, 4)),
        ([(5, 1, 4), (3, 1), ()], (5, 3, 4)),
        ([(0,), (1,)], (0,)),
        ([[2, 1], (2,)], (2, 2)),
    ],
)
def test_broadcast_shapes(shapes: list[Sequence[int]], expected: tuple[int, ...]) -> None:
    assert broadcast_shapes(*shapes) == expected


@pytest.mark.parametrize("shapes", [[(2,), (3,)], [(0,), (3,)], [(2, 3), (3, 2)], [(-1,), (1,)]])
def test_shapes_that_do_not_broadcast(shapes: list[Sequence[int]]) -> None:
    with pytest.raises(ValueError, match=r"broadcast|negative"):
        broadcast_shapes(*shapes)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ((), (2, 3), True),
        ((3,), (2, 3), True),
        ((1, 3), (2, 3), True),
        ((2, 1), (2, 3), True),
        ((2,), (2, 3), False),
        ((2, 3), (1, 3), False),
        ((1, 2, 3), (2, 3), False),
    ],
)
def test_is_broadcastable_to(source: Sequence[int], target: Sequence[int], expected: bool) -> None:
    assert is_broadcastable_to(source, target) is expected


@pytest.mark.parametrize(
    ("dim", "in_range", "unique"),
    [
        (None, True, True),
        (2, True, True),
        (-3, True, True),
        (3, False, True),
        (-4, False, True),
        ([0, 1], True, True),
        ([0, -3], True, False),
        ([], True, True),
        ((0, 3), False, False),
    ],
)
def test_which_dims_are_legal(dim: Dim, in_range: bool, unique: bool) -> None:
    assert dim_range_validity(X, dim) is in_range
    assert dim_uniqueness(X, dim) is unique


@pytest.mark.parametrize(
    ("dim", "axes", "shape", "kept"),
    [
        (None, {0, 1, 2}, (), (1, 1, 1)),
        (-1, {2}, (2, 3), (2, 3, 1)),
        ([0, -1], {0, 2}, (3,), (1, 3, 1)),
        ([], {0, 1, 2}, (), (1, 1, 1)),
        (True, {1}, (2, 4), (2, 1, 4)),
    ],
)
def test_reductions(dim: Dim, axes: set[int], shape: tuple[int, ...], kept: tuple[int, ...]) -> None:
    assert reduced_axes(X, dim) == axes
    assert reduced_shape((2, 3, 4), dim) == shape
    assert reduced_shape([2, 3, 4], dim, keepdim=True) == kept


def test_an_empty_dim_may_reduce_nothing() -> None:
    assert reduced_shape((2, 3), [], False, "noop") == (2, 3)
    assert reduced_shape((2, 3), None, False, "noop") == ()

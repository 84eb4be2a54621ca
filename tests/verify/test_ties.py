"""Indices that differ only between equal values."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from opschema_cli.verify.compare import against  # noqa: E402
from opschema_cli.verify.model import Tolerance  # noqa: E402
from opschema_cli.verify.ties import only_ties  # noqa: E402

X = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, -0.0, math.nan, math.nan]])


@pytest.mark.parametrize(
    ("actual", "expected", "tied"),
    [
        ([2, 3], [0, 2], True),  # argmax(1): 3.0 twice, NaN twice
        ([1, 3], [0, 2], False),
        ([4, 3], [0, 2], False),  # beyond the row
        ([[2, 0], [3, 2]], [[0, 2], [2, 3]], True),  # topk(2, 1)
        ([[2, 2], [3, 2]], [[0, 2], [2, 3]], False),  # one of them twice
        ([[0], [1]], [[2], [0]], True),  # keepdim
        (2, 0, True),  # of all elements
        (1, 0, False),
        ([1, 1, 1, 0], [1, 0, 1, 0], False),  # argmax(0)
        ([2, 3, 1], [0, 2, 1], False),  # of no shape that indices into it have
    ],
)
def test_indices_are_judged_by_the_values_they_point_at(actual: object, expected: object, tied: bool) -> None:
    assert only_ties(torch.tensor(actual, dtype=torch.int32), torch.tensor(expected), [X]) is tied


def test_only_integers_are_indices() -> None:
    assert not only_ties(torch.tensor([True]), torch.tensor([False]), [torch.zeros(2)])
    assert not only_ties(torch.tensor([1]), torch.tensor([0]), [])


def test_ties_are_no_difference_from_the_reference() -> None:
    actual, exact = torch.tensor([2, 3]), torch.tensor([0, 2])
    found = [
        against(actual, exact, None, Tolerance(), side="after", output="i", sources=sources).findings
        for sources in ([X], [X.nan_to_num(7.0) + torch.arange(4)], [])
    ]
    assert [[finding.check for finding in findings] for findings in found] == [[], ["exact"], ["exact"]]

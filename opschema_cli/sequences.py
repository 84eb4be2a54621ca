"""Algorithms over sequences that several rooms use."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from itertools import takewhile
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The second items of pairs, by the first ones."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def shared_start(first: Iterable[object], second: Iterable[object]) -> int:
    """Return the number of items that two sequences share at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def longest_rise(values: Sequence[int]) -> list[int]:
    """Indexes of a longest strictly increasing subsequence, by patience sorting."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, value in enumerate(values):
        at = bisect_left(tails, value)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [value]
        ends[at : at + 1] = [index]
    kept: list[int] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        kept.append(index)
        index = before[index]
    return kept[::-1]

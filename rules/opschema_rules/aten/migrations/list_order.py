"""The order of a list of operators: which one it nearly has, and where a new name goes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

Order: TypeAlias = Literal["ascii", "letters"]

_KEYS: Mapping[Order, Callable[[str], str]] = {
    "ascii": lambda name: name,
    "letters": lambda name: name.replace("_", "").lower(),
}
_MOSTLY = 3 / 4
"""The part of a list that must be in order for the list to count as sorted: people misplace a few."""


def sort_key(order: Order) -> Callable[[str], tuple[str, str]]:
    """The sort key of a list: unchanged names, or names without their underscores and capitals."""
    return lambda name: (_KEYS[order](name), name)


def nearest_order(stretches: Sequence[Sequence[str]]) -> Order:
    """The order in which the most names already are; that of ASCII where there is a tie."""
    return max(_KEYS, key=lambda order: sum(len(_in_order(names, order)) for names in stretches))


def place_in(names: Sequence[str], name: str, order: Order) -> int:
    """The number that a new name gets: its sorted place in a list that is mostly sorted, else the last."""
    key = sort_key(order)
    kept = _in_order(names, order)
    if len(kept) < _MOSTLY * len(names):
        return len(names)
    at = bisect_right([key(names[number]) for number in kept], key(name))
    return kept[at - 1] + 1 if at else 0


def _in_order(names: Sequence[str], order: Order) -> list[int]:
    """The numbers of the most names that are in order already: a longest non-decreasing subsequence."""
    key = sort_key(order)
    ends: list[int] = []
    tops: list[tuple[str, str]] = []
    before: list[int | None] = []
    for number, name in enumerate(names):
        at = bisect_right(tops, key(name))
        before.append(ends[at - 1] if at else None)
        ends[at : at + 1], tops[at : at + 1] = [number], [key(name)]
    found: list[int] = []
    last = ends[-1] if ends else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found[::-1]

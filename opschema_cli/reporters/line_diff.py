"""Patience diff: matches the lines that occur exactly once in both texts, then the lines between them.

A function that moved or was rewritten then shows as one block, where a longest common subsequence would interleave it with
blank lines and closing brackets of its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import Match, SequenceMatcher

from opschema_cli.sequences import longest_rise

Region = tuple[int, int, int, int]
"""Lines of the old text and lines of the new one: first and past the last."""

FALLBACK = 10_000
"""Pairs of lines up to which a region without unique lines is left to difflib; its time may grow with the cube of a side."""


class LineMatcher(SequenceMatcher[str]):
    """The lines that two texts share, with difflib's grouping of the rest."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__()  # without the texts: difflib would index them
        self._old, self._new = old, new

    def get_matching_blocks(self) -> list[Match]:
        """The shared stretches in order, the last one empty and at both ends."""
        found: list[Match] = []
        for i, j in sorted(_matches(self._old, self._new)):
            last = found[-1] if found else Match(-1, -1, 0)
            if (last.a + last.size, last.b + last.size) == (i, j):
                found[-1] = Match(last.a, last.b, last.size + 1)
            else:
                found.append(Match(i, j, 1))
        return [*found, Match(len(self._old), len(self._new), 0)]


def _matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of lines that are matched, in no order."""
    found: list[tuple[int, int]] = []
    regions: list[Region] = [(0, len(old), 0, len(new))]
    while regions:
        i1, i2, j1, j2 = region = _trimmed(old, new, regions.pop(), found)
        if i1 == i2 or j1 == j2:
            continue
        anchors = _anchors(old, new, region)
        if anchors:
            starts, stops = [(i1, j1), *((i + 1, j + 1) for i, j in anchors)], [*anchors, (i2, j2)]
            regions += [(i, i_stop, j, j_stop) for (i, j), (i_stop, j_stop) in zip(starts, stops, strict=True)]
            found += anchors
        elif (i2 - i1) * (j2 - j1) <= FALLBACK:
            blocks = SequenceMatcher(None, old[i1:i2], new[j1:j2], autojunk=False).get_matching_blocks()
            found += [(i1 + block.a + k, j1 + block.b + k) for block in blocks for k in range(block.size)]
    return found


def _trimmed(old: Sequence[str], new: Sequence[str], region: Region, found: list[tuple[int, int]]) -> Region:
    """The region without the lines that are the same at both ends, which are added to ``found``."""
    i1, i2, j1, j2 = region
    while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
        found.append((i1, j1))
        i1, j1 = i1 + 1, j1 + 1
    while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
        i2, j2 = i2 - 1, j2 - 1
        found.append((i2, j2))
    return i1, i2, j1, j2


def _anchors(old: Sequence[str], new: Sequence[str], region: Region) -> list[tuple[int, int]]:
    """Return a longest common subsequence of the lines that occur exactly once on each side of a region."""
    i1, i2, j1, j2 = region
    once = _unique(new, j1, j2)
    pairs = [(i, once[line]) for line, i in _unique(old, i1, i2).items() if line in once]
    return [pairs[index] for index in longest_rise([j for _, j in pairs])]


def _unique(lines: Sequence[str], start: int, stop: int) -> dict[str, int]:
    """The lines of a range that it has once, with their indexes, in order."""
    counts = Counter(lines[start:stop])
    return {lines[index]: index for index in range(start, stop) if counts[lines[index]] == 1}

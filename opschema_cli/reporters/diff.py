"""Changes of a fix as hunks of lines, and their rendering."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec

from opschema_cli.lint.diagnostic import Fix
from opschema_cli.reporters import Report
from opschema_cli.reporters.frame import GUTTER, room
from opschema_cli.reporters.screen import Screen
from opschema_cli.source.text import Edit, EditConflictError, Source, Span, apply_edits

_NEWLINE = re.compile(r"\r\n|\r|\n")
_STYLES = {"-": "red", "+": "green"}


class Hunk(msgspec.Struct, frozen=True):
    """Lines ``old`` of a file, starting at line ``line``, which are replaced by ``new``. If no lines are removed, ``above`` is
    the line before the insertion, or ``below`` the line after it if there is none before.
    """

    path: str
    line: int
    old: Sequence[str]
    new: Sequence[str]
    above: str | None = None
    below: str | None = None

    @property
    def shown(self) -> list[tuple[str, int | None, str]]:
        """The lines to show: their sign, their number if they are in the file, and their text."""
        lines = [("-", number, text) for number, text in enumerate(self.old, self.line)]
        rows: list[tuple[str, int | None, str]] = [*lines, *(("+", None, text) for text in self.new)]
        if self.above is not None:
            rows.insert(0, (" ", self.line - 1, self.above))
        if self.below is not None:
            rows.append((" ", self.line, self.below))
        return rows


def hunks(report: Report, fix: Fix) -> list[Hunk]:
    """Return the hunks of a fix, file by file, or none if a file cannot be read or edits conflict."""
    edits: dict[str, list[Edit]] = {}
    for change in fix.edits:
        edits.setdefault(change.path, []).append(change.edit)
    found: list[Hunk] = []
    for path, changes in edits.items():
        source = report.sources(path)
        if source is None:
            return []
        try:
            found += [_hunk(source, group) for group in _groups(source, changes)]
        except EditConflictError:
            return []
    return found


def _groups(source: Source, edits: Sequence[Edit]) -> list[list[Edit]]:
    """The edits in order, those that share a line together."""
    groups: list[list[Edit]] = []
    last = 0
    for edit in sorted(edits):
        if source.position(edit.span.start).line > last:
            groups.append([])
        groups[-1].append(edit)
        last = max(last, source.position(edit.span.end).line)
    return groups


def _hunk(source: Source, edits: Sequence[Edit]) -> Hunk:
    """The lines of the edits before and after, without those that stay the same at both ends."""
    first = source.position(edits[0].span.start).line
    last = source.position(max(edit.span.end for edit in edits)).line
    start, end = source.line_span(first).start, source.line_span(last).end
    before = source.text[start:end]
    moved = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.replacement) for edit in edits]
    old, new = _NEWLINE.split(before), _NEWLINE.split(apply_edits(before, moved))
    head = shared(old, new)
    old, new = old[head:], new[head:]
    tail = shared(old[::-1], new[::-1])
    line, old, new = first + head, old[: len(old) - tail], new[: len(new) - tail]
    above = source.line_text(line - 1) if not old and line > 1 else None
    below = source.line_text(line) if not old and line == 1 and source.text else None
    return Hunk(source.path, line, old, new, above, below)


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Number of items that both begin with. Halves are compared at once: a line may be long, and have many findings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def draw_hunk(hunk: Hunk, screen: Screen, gutter: int) -> Iterator[str]:
    """Yield the removed lines with their numbers, then the added lines without numbers. An insertion is shown below the
    preceding line.
    """
    width = room(screen, gutter)
    for sign, number, line, first in cut_alike(hunk, screen, width):
        view = screen.view_from(line, first, width)
        head = screen.paint(f"  {'' if number is None else number:>{gutter}} ", GUTTER)
        body = f"{sign} {view.text}".rstrip()
        yield f"{head}{screen.paint(body, _STYLES[sign]) if sign in _STYLES else body}\n"


def cut_alike(hunk: Hunk, screen: Screen, width: int) -> Iterator[tuple[str, int | None, str, int]]:
    """Yield the lines of a hunk, each with the character to start with. Long lines of both sides are cut at the same place,
    around the change.
    """
    firsts = [_first(old, new, screen, width) for old, new in zip_longest(hunk.old, hunk.new, fillvalue="")]
    starts = {"-": iter(firsts), "+": iter(firsts)}
    for sign, number, line in hunk.shown:
        yield sign, number, line, next(starts[sign]) if sign in starts else 0


def _first(old: str, new: str, screen: Screen, width: int) -> int:
    """The character with which both views start."""
    start = shared(old, new)
    tail = shared(old[start:][::-1], new[start:][::-1])
    # The head of a long change is enough to see; the head of the line says where it is.
    ends = (min(len(text) - tail, start + width // 2) for text in (old, new))
    return max(screen.first(text, start, end, width) for text, end in zip((old, new), ends, strict=True))

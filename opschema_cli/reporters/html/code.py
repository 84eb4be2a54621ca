"""Code frames as tables: the lines around the places in one file, with the places marked and their messages below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from opschema_cli.reporters.diff import Hunk, cut_alike
from opschema_cli.reporters.frame import Frame, Mark, fit
from opschema_cli.reporters.html.elements import marked_text, prose, text
from opschema_cli.reporters.screen import Screen

WIDTH = 400
"""Number of characters of a longer line that are shown around a mark."""

_SCREEN = Screen(WIDTH)
_CHANGES = {
    "-": (' class="removed"', "<del>", "</del>"),
    "+": (' class="added"', "<ins>", "</ins>"),
    " ": ("", "", ""),
}
_CUT = '<span class="cut">…</span>'


def frame_table(frame: Frame) -> str:
    """A frame, under the place of its first mark."""
    mark = frame.marks[0]
    place = text(f"{frame.source.path}:{mark.line}:{mark.start + 1}")
    rows = "".join(row for number in frame.lines for row in _rows(frame, number))
    return f'<table class="code"><caption>{place}</caption>{rows}</table>'


def _rows(frame: Frame, number: int) -> Iterator[str]:
    """A line, once for each group of marks that fit together, with their messages below."""
    line = frame.source.line_text(number)
    marks = sorted((mark for mark in frame.marks if mark.line == number), key=attrgetter("start"))
    if not marks:
        yield _row(number, marked_text(line[:WIDTH]) + (_CUT if len(line) > WIDTH else ""))
    while marks:
        view, fitting = fit(line, marks, _SCREEN, WIDTH)
        last = view.first + len(view.starts) - 1
        shown = "".join(_pieces(line, marks[:fitting], view.first, last))
        yield _row(number, (_CUT if view.first else "") + shown + (_CUT if last < len(line) else ""))
        yield from filter(None, map(_note, marks[:fitting]))
        marks = marks[fitting:]


def _pieces(line: str, marks: Sequence[Mark], first: int, last: int) -> Iterator[str]:
    """The characters from ``first`` to ``last``, each stretch that a place covers marked; the primary place comes before others."""
    spans = [(max(first, mark.start), min(last, max(mark.end, mark.start + 1)), mark) for mark in marks]
    edges = sorted({first, last, *(edge for start, end, _ in spans for edge in (start, end) if first <= edge <= last)})
    for start, end in pairwise(edges):
        covering = [mark for begin, stop, mark in spans if begin <= start and end <= stop]
        yield _marked(marked_text(line[start:end]), covering) if covering else marked_text(line[start:end])
    behind = [mark for mark in marks if mark.start >= last]
    if behind:
        yield _marked(" ", behind)


def _marked(shown: str, marks: Sequence[Mark]) -> str:
    kind = "primary" if any(mark.sign == "^" for mark in marks) else "other"
    return f'<mark class="{kind}">{shown}</mark>'


def _note(mark: Mark) -> str:
    """The text at a place, and where it ends if that is another line; empty if neither is known."""
    until = f"to line {mark.until}" if mark.until > mark.line else ""
    said = ": ".join(filter(None, (until, mark.label)))
    kind = "primary" if mark.sign == "^" else "other"
    return f'<tr class="note {kind}"><td></td><td>{prose(said)}</td></tr>' if said else ""


def _row(number: int, code: str) -> str:
    return f'<tr><th scope="row">{number}</th><td><code>{code}</code></td></tr>'


def hunk_table(hunk: Hunk) -> str:
    """The lines of a hunk; those that are in the file have their numbers."""
    rows = "".join(_changed(*line) for line in cut_alike(hunk, _SCREEN, WIDTH))
    return f'<table class="code diff"><caption>{text(f"{hunk.path}:{hunk.line}")}</caption>{rows}</table>'


def _changed(sign: str, number: int | None, line: str, first: int) -> str:
    shown = line[first : first + WIDTH]
    code = (_CUT if first else "") + marked_text(shown) + (_CUT if first + len(shown) < len(line) else "")
    kind, before, after = _CHANGES[sign]
    head = "<td></td>" if number is None else f'<th scope="row">{number}</th>'
    return f"<tr{kind}>{head}<td><code>{sign} {before}{code}{after}</code></td></tr>"

"""Code frames: the lines around places of one file, with the places underlined.

The primary place is underlined ``^^^^``, the other side ``----`` with what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.screen import Screen, View, cells, wrap
from opschema_cli.source.text import Source, Span

GUTTER = "color(243)"
"""A grey that has contrast on black and on white, unlike the blue of most terminals."""
OTHER_SIDE = "bold cyan"
SEVERITIES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "bold magenta",
}

# A place joins a frame of its file that has a place at most this many lines away.
_NEAR = 4
# A message beside or below its underline gets at least this many cells.
_LABEL_ROOM = 40


class Mark(msgspec.Struct, frozen=True):
    """Characters of one line, counted from 0, to underline; ``until`` is the line where their span ends."""

    line: int
    start: int
    end: int
    until: int
    label: str
    style: str
    sign: str


class Frame(msgspec.Struct, frozen=True, dict=True):
    """Places of one file that are shown together, the first one first."""

    source: Source
    marks: list[Mark]

    @cached_property
    def lines(self) -> range:
        """The lines to show: those of the places, and the lines before and after the primary place."""
        first = min(mark.line for mark in self.marks)
        last = max(mark.line for mark in self.marks)
        first -= bool(self.source.line_text(first - 1).strip())
        last += self.primary and bool(self.source.line_text(last + 1).strip())
        return range(first, last + 1)

    @property
    def primary(self) -> bool:
        """Whether the primary place is here."""
        return self.marks[0].sign == "^"

    def takes(self, path: str, line: int) -> bool:
        """Whether a place at that line belongs here."""
        return self.source.path == path and any(abs(mark.line - line) <= _NEAR for mark in self.marks)


def frames(report: Report, diagnostic: Diagnostic, limit: int) -> list[Frame]:
    """Return the frame of the primary place, then those of at most ``limit`` related places. Unreadable files have none."""
    found: list[Frame] = []
    source = report.sources(diagnostic.place.path)
    if source is not None:
        span, style = diagnostic.place.span, SEVERITIES[diagnostic.severity]
        found.append(Frame(source, [_mark(source, span, "", style, "^")]))
    for related in diagnostic.related[:limit]:
        source = report.sources(related.place.path)
        if source is not None:
            _join(found, source, _mark(source, related.place.span, related.message, OTHER_SIDE, "-"))
    return found


def _join(found: list[Frame], source: Source, mark: Mark) -> None:
    for frame in found:
        if frame.takes(source.path, mark.line):
            frame.marks.append(mark)
            return
    found.append(Frame(source, [mark]))


def _mark(source: Source, span: Span, label: str, style: str, sign: str) -> Mark:
    line, column = source.position(span.start)
    text = source.text[span.start : span.end]
    until, end = line, column + len(text)
    if "\n" in text or "\r" in text:
        until, end = source.position(span.start + len(text.rstrip()))
    length = len(source.line_text(line))
    start = min(column - 1, length)
    return Mark(line, start, length if until > line else min(end - 1, length), until, label, style, sign)


def room(screen: Screen, gutter: int) -> int:
    """The cells that a frame's text may take; one more is left for a caret past a line's end."""
    return max(_LABEL_ROOM, screen.width - gutter - len("   | ") - 1)


def draw(frame: Frame, screen: Screen, gutter: int) -> Iterator[str]:
    """The frame's lines, each with its underlines below."""
    width = room(screen, gutter)
    for number in frame.lines:
        line = frame.source.line_text(number)
        head = screen.paint(f"  {number:>{gutter}} {screen.glyphs.bar}", GUTTER)
        marks = [mark for mark in frame.marks if mark.line == number]
        if not marks:
            yield _row(head, screen.view(line, 0, 0, width))
        marks.sort(key=attrgetter("start"))
        while marks:
            view, fitting = fit(line, marks, screen, width)
            yield _row(head, view)
            for mark in marks[:fitting]:
                yield from _underline(mark, view, screen, gutter, width)
            marks = marks[fitting:]


def _row(head: str, view: View) -> str:
    text = view.text.rstrip()
    return f"{head} {text}\n" if text else f"{head}\n"


def fit(line: str, marks: Sequence[Mark], screen: Screen, width: int) -> tuple[View, int]:
    """The line cut around as many of the marks as fit together, at least the first; and their number."""
    for number in range(len(marks), 0, -1):
        start, end = marks[0].start, max(mark.end for mark in marks[:number])
        view = screen.view(line, start, end, width)
        if view.shows(start, end):
            break
    return view, number


def _underline(mark: Mark, view: View, screen: Screen, gutter: int, width: int) -> Iterator[str]:
    """The underline, with its label beside it where that fits on the line, else below."""
    start = view.cell(mark.start)
    size = max(1, view.cell(mark.end) - start)
    underline, label = mark.sign * size, visible(mark.label, screen.encoding)
    if mark.until > mark.line:
        cut = screen.glyphs.cut
        underline = underline[: -len(cut)] + cut if size > len(cut) else underline
        label = ": ".join(filter(None, (f"to line {mark.until}", label)))
    beside = start + size + 1 + cells(label) <= width
    yield _marked(mark, start, f"{underline} {label}".rstrip() if beside else underline, screen, gutter)
    if label and not beside:
        start = min(start, width - min(cells(label), _LABEL_ROOM))
        for text in wrap(label, width - start, screen.encoding):
            yield _marked(mark, start, text, screen, gutter)


def _marked(mark: Mark, start: int, text: str, screen: Screen, gutter: int) -> str:
    head = screen.paint(f"  {'':{gutter}} {screen.glyphs.bar} ", GUTTER)
    return f"{head}{screen.paint(' ' * start + text, mark.style)}\n"

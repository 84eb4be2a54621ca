"""The report for people: each finding with the code of both sides, and its fix, on a rich console.

Nothing of a linted file reaches the terminal unescaped, and no text is read as rich markup.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from opschema_cli.lint.diagnostic import Diagnostic, Fix, NotChecked
from opschema_cli.phrases import count, some
from opschema_cli.reporters import Report
from opschema_cli.reporters.diff import Hunk, draw_hunk, hunks
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.frame import GUTTER, SEVERITIES, Frame, draw, frames
from opschema_cli.reporters.phrases import details, headline, missed, not_understood
from opschema_cli.reporters.places import where
from opschema_cli.reporters.screen import Screen, cells, wrap

if TYPE_CHECKING:
    from rich.console import Console

Color: TypeAlias = Literal["auto", "always", "never"]

_STRONG = "bold"
_GOOD = "bold green"

_QUOTED = re.compile(r"`[^`]*`")

_TOLD_BY = frozenset({"COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"})
"""Environment variables that make rich treat other streams as a terminal, or set its width."""
_PIPED_WIDTH = 100
_PROSE_WIDTH = 120
_RELATED_SHOWN = 8
_DIFF_LINES = 8


def open_console(stream: TextIO, color: Color = "auto") -> Console:
    """A console for reports on a stream; off a terminal it is as wide as ``COLUMNS`` says, or 100 cells."""
    # Not at the top: it takes as long to import as all that a report without colours needs.
    from rich.console import Console

    known = stream.isatty() or "COLUMNS" in os.environ
    return Console(
        file=stream,
        force_terminal={"auto": None, "always": True, "never": False}[color],
        width=None if known else _PIPED_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def open_screen(stream: TextIO, color: Color = "auto") -> Screen:
    """Detect the capabilities of a stream."""
    if color != "always" and not stream.isatty() and _TOLD_BY.isdisjoint(os.environ):
        return Screen(_PIPED_WIDTH, (getattr(stream, "encoding", None) or "utf-8").lower())
    from rich.console import COLOR_SYSTEMS

    console = open_console(stream, color)
    # Colours that are no escape sequences are none of ours.
    name = None if console.no_color or console.legacy_windows else console.color_system
    return Screen(console.width, console.encoding, COLOR_SYSTEMS[name] if name is not None else None)


def write(report: Report, stream: TextIO, screen: Screen | None = None) -> None:
    """Write the diagnostics and the summary to a stream, as its screen can show them."""
    screen = screen or open_screen(stream)
    # Written as it is made: rich would hold, measure and style the entire report first, which takes as long again.
    for diagnostic in report.diagnostics:
        stream.write("".join(_diagnostic(report, diagnostic, screen)) + "\n")
    if report.unresolved:
        stream.write("".join(f"{line}\n" for line in not_understood(report)) + "\n")
    for item in report.not_checked:
        stream.write("".join(_unchecked(item, screen)) + "\n")
    stream.write(_summary(report, screen))
    stream.flush()


def _diagnostic(report: Report, diagnostic: Diagnostic, screen: Screen) -> Iterator[str]:
    shown = frames(report, diagnostic, _RELATED_SHOWN)
    changes = hunks(report, diagnostic.fix) if diagnostic.fix else []
    gutter = _gutter(shown, changes)
    yield _header(report, diagnostic, screen)
    yield _prose("", _STRONG, diagnostic.message, screen)
    for number, frame in enumerate(shown):
        if number or frame.source.path != diagnostic.place.path:
            mark = frame.marks[0]
            yield _branch(f"{frame.source.path}:{mark.line}:{mark.start + 1}", screen, gutter)
        yield from draw(frame, screen, gutter)
    for text in _unseen(report, diagnostic):
        yield _branch(text, screen, gutter)
    if diagnostic.ops:
        yield _ops(diagnostic.ops, screen)
    if diagnostic.fix:
        yield _help(diagnostic.fix, screen)
        yield from _diff(changes, diagnostic.place.path, screen, gutter)


def _unchecked(item: NotChecked, screen: Screen) -> Iterator[str]:
    """Something the run could not check, as a finding without a place."""
    yield f"{screen.paint(f'{item.severity.value} {item.code}', SEVERITIES[item.severity])} {item.name}\n"
    yield _prose("", _STRONG, missed(item), screen)
    yield _prose("help: ", _GOOD, item.hint, screen)


def _gutter(shown: Sequence[Frame], changes: Sequence[Hunk]) -> int:
    """Digits of the largest line number to show; at least three, so that reports line up."""
    last = [frame.lines[-1] for frame in shown]
    last += [hunk.line + max(len(hunk.old), len(hunk.new)) for hunk in changes]
    return max(3, len(str(max(last, default=0))))


def _header(report: Report, diagnostic: Diagnostic, screen: Screen) -> str:
    """Return the header: first the place, so that terminals make it a link, then the finding next to it, or below if it is too
    wide.
    """
    place = visible(where(report, diagnostic.place), screen.encoding)
    found = f"{diagnostic.severity.value} {diagnostic.code}"
    name = visible(f" {diagnostic.name}", screen.encoding)
    if not place:
        return f"{screen.paint(found, SEVERITIES[diagnostic.severity])}{name}\n"
    fits = cells(place) + len(found) + len(name) + 2 <= screen.width
    gap = "  " if fits else "\n  "
    return f"{screen.paint(place, _STRONG)}{gap}{screen.paint(found, SEVERITIES[diagnostic.severity])}{name}\n"


def _branch(text: str, screen: Screen, gutter: int) -> str:
    """The line that leads from one frame to the next."""
    head = screen.paint(f"  {'':{gutter}} {screen.glyphs.branch} ", GUTTER)
    return f"{head}{visible(text, screen.encoding)}\n"


def _unseen(report: Report, diagnostic: Diagnostic) -> Iterator[str]:
    """The related places that have no frame: their file cannot be read, or there are too many."""
    for place, message in ((other.place, other.message) for other in diagnostic.related[:_RELATED_SHOWN]):
        if report.sources(place.path) is None:
            yield f"{place.path}: {message}"
    more = len(diagnostic.related) - _RELATED_SHOWN
    if more > 0:
        yield f"and {count(more, 'more place')}"


def _ops(ops: Sequence[str], screen: Screen) -> str:
    """The ops on one line, as many as fit; at least one."""
    room = min(screen.width, _PROSE_WIDTH) - len("  ops: ")
    shown = min(len(ops), room)
    while shown > 1 and len(some(ops, shown)) > room:
        shown -= 1
    head = "op: " if len(ops) == 1 else "ops: "
    return _prose(head, _STRONG, some(ops, shown), screen)


def _help(fix: Fix, screen: Screen) -> str:
    if fix.safety == "safe":
        how = "safe fix: --fix"
    else:
        how = ", ".join(filter(None, ("unsafe fix: --unsafe-fixes", fix.why_unsafe)))
    return _prose("help: ", _GOOD, f"{fix.title} ({how})", screen)


def _diff(changes: Sequence[Hunk], path: str, screen: Screen, gutter: int) -> Iterator[str]:
    """Yield the first hunks of a fix while they are small. Files other than ``path`` are named."""
    lines = [*accumulate(len(hunk.old) + len(hunk.new) for hunk in changes)]
    shown = bisect_right(lines, _DIFF_LINES)
    for hunk in changes[:shown]:
        if hunk.path != path:
            path = hunk.path
            yield _branch(f"{path}:{hunk.line}", screen, gutter)
        yield from draw_hunk(hunk, screen, gutter)
    if shown < len(changes):
        more = lines[-1] - (lines[shown - 1] if shown else 0)
        yield _branch(f"{count(more, 'changed line')} {'more ' if shown else ''}with --diff", screen, gutter)


def _prose(head: str, style: str, text: str, screen: Screen) -> str:
    """Yield an indented paragraph after its head, with highlighted backquoted text."""
    indent = " " * (2 + len(head))
    lines = wrap(text, min(screen.width, _PROSE_WIDTH) - len(indent), screen.encoding)
    body = f"\n{indent}".join(lines)
    if screen.colors is not None:
        body = _QUOTED.sub(lambda match: screen.paint(match.group(), _STRONG), body)
    return f"  {screen.paint(head, style)}{body}\n"


def _summary(report: Report, screen: Screen) -> str:
    found = headline(report)
    levels = [item.severity for item in report.diagnostics] + [item.severity for item in report.not_checked]
    worst = max(levels, key=lambda level: level.rank, default=None)
    style = SEVERITIES[worst] if worst else _GOOD
    text = "\n".join(wrap(found + details(report), min(screen.width, _PROSE_WIDTH), screen.encoding))
    return f"{screen.paint(text[: len(found)], style)}{text[len(found) :]}\n"

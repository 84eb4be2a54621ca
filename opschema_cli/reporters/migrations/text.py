"""Migrations for people: the diff file by file, the notes left to a person, and the summary.

On a terminal the diff has line numbers and colours; elsewhere it is one that ``patch`` and ``git apply`` accept.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from opschema_cli.phrases import count
from opschema_cli.reporters.diff import shared
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.frame import GUTTER
from opschema_cli.reporters.line_diff import LineMatcher
from opschema_cli.reporters.migrations import FileReport, Listed, MigrationReport, NoteReport, RunReport
from opschema_cli.reporters.screen import Screen, wrap
from opschema_cli.reporters.unified import unified_diff

NEWLINE = Segment("\n")
_GUTTER = Style.parse(GUTTER)
_STRONG = Style(bold=True)
_STRESSED = Style(bold=True, underline=True)
_REMOVED, _ADDED = Style(color="red"), Style(color="green")
_STYLES = {"-": _REMOVED, "+": _ADDED}
_CONTEXT = 3
_MARGIN, _LEAST_WIDTH = 6, 20
_PROSE_WIDTH = 120


def patch(report: RunReport) -> str:
    """The diff as programs read it."""
    lines = (line for file in report.files for line in unified_diff(file.path, file.before, file.after))
    return "".join(f"{line}\n" for line in lines)


def write(report: RunReport, console: Console) -> None:
    """Print the requested part (the diff, the written files or the pending sites), then notes and a summary.

    Off a terminal the diff is left to :func:`patch`.
    """
    screen = Screen(console.width, console.encoding)
    segments: list[Segment] = []
    for file in report.files:
        if report.mode == "apply":
            segments += stat(file, screen)
        elif console.is_terminal:
            segments += diff(file, screen)
    if report.mode == "check":
        segments += _pending(report, screen)
    segments += _notes(report.notes, screen)
    segments += _prose("", _summary(report), screen)
    console.print(Segments(segments), end="", soft_wrap=True)


def write_list(found: Sequence[Listed], packs: Sequence[str], elsewhere: Sequence[str], console: Console) -> None:
    """Print the migrations that have something to do here or need options, and a line for each of the others: why not.
    ``packs`` are the packs that find something of their kind, ``elsewhere`` the others.
    """
    screen = Screen(console.width, console.encoding)
    segments: list[Segment] = []
    shown = [item for item in found if item.sites != 0]
    for item in shown:
        status = item.reason or (count(item.sites, "site") if item.sites is not None else _needs(item))
        segments += [Segment(visible(item.name, screen.encoding), _STRONG), Segment(f"  {visible(status)}"), NEWLINE]
        segments += _prose("  ", item.summary, screen)
    idle = [item for item in found if item.sites == 0]
    if idle:
        segments += _prose("", "Nothing to do here:", screen)
    for item in idle:
        segments += _prose("  ", f"{item.name}: {item.reason}", screen)
    if packs and not found:
        segments += _prose(
            "", f"There are no migrations for the code found here, which {', '.join(packs)} checks.", screen
        )
    if packs and elsewhere:
        segments += _prose(
            "", f"Not applicable: the migrations of {', '.join(elsewhere)}, which find nothing here.", screen
        )
    if shown:
        segments += _prose("", "`opschema migrate NAME` shows what it would change; `--apply` writes it.", screen)
    console.print(Segments(segments), end="", soft_wrap=True)


def _needs(item: Listed) -> str:
    return "needs " + " ".join(f"-o {name}=…" for name in item.needs)


def _prose(indent: str, text: str, screen: Screen) -> Iterator[Segment]:
    for line in wrap(text, min(screen.width, _PROSE_WIDTH) - len(indent), screen.encoding):
        yield Segment(f"{indent}{line}")
        yield NEWLINE


class _Line(NamedTuple):
    """A line of a diff: its numbers before and after (0 if it does not exist), its sign and its text; ``other`` is its
    counterpart on the other side. A line without numbers is a gap.
    """

    old: int
    new: int
    sign: str = ""
    text: str = ""
    other: str = ""


def _lines(file: FileReport) -> list[_Line]:
    """The changed lines of a file and those around them."""
    old, new = (text.splitlines() if text else [] for text in (file.before, file.after))
    found: list[_Line] = []
    for group in LineMatcher(old, new).get_grouped_opcodes(_CONTEXT):
        if found:
            found.append(_Line(0, 0))
        for kind, *stretch in group:
            if kind == "equal":
                i1, _, j1, j2 = stretch
                found += [_Line(i1 + number - j1 + 1, number + 1, " ", new[number]) for number in range(j1, j2)]
            else:
                found += _changed(old, new, *stretch)
    return found


def _changed(old: Sequence[str], new: Sequence[str], i1: int, i2: int, j1: int, j2: int) -> Iterator[_Line]:
    """Yield the removed lines, then the added ones. Lines that correspond to each other are linked."""
    paired = i2 - i1 == j2 - j1
    for i in range(i1, i2):
        yield _Line(i + 1, 0, "-", old[i], new[i - i1 + j1] if paired else "")
    for j in range(j1, j2):
        yield _Line(0, j + 1, "+", new[j], old[j - j1 + i1] if paired else "")


def diff(file: FileReport, screen: Screen) -> Iterator[Segment]:
    """The file with its changed lines and those around them, with their numbers before and after."""
    lines = _lines(file)
    digits = max([3, *(len(str(max(line.old, line.new))) for line in lines)])
    gutter = 2 * digits + 1
    yield from stat(file, screen)
    for line in lines:
        if not line.sign:
            yield Segment(f"  {screen.glyphs.cut:>{digits}}", _GUTTER)
            yield NEWLINE
        elif line.sign == " ":
            view = screen.view_from(line.text, 0, max(_LEAST_WIDTH, screen.width - gutter - _MARGIN)).text
            yield Segment(f"  {_numbers(line, digits)}", _GUTTER)
            yield Segment(f"   {view}".rstrip())
            yield NEWLINE
        else:
            yield from _rows(line, digits, screen)
    yield NEWLINE


def _numbers(line: _Line, digits: int) -> str:
    """The column of numbers before, and that of numbers after."""
    return f"{line.old or '':>{digits}} {line.new or '':>{digits}}"


def _rows(line: _Line, digits: int, screen: Screen) -> Iterator[Segment]:
    """Yield a changed line in as many rows as necessary, with its differences from the other side highlighted."""
    text, other = (visible(side.expandtabs(4), screen.encoding) for side in (line.text, line.other))
    start, end = _differing(text, other)
    gutter = 2 * digits + 1
    style, at = _STYLES[line.sign], 0
    for row in _folded(text, max(_LEAST_WIDTH, screen.width - gutter - _MARGIN)):
        first, last = (min(max(edge - at, 0), len(row)) for edge in (start, end))
        yield Segment(f"  {_numbers(line, digits) if not at else '':{gutter}} ", _GUTTER)
        yield Segment(f"{line.sign} {row[:first]}", style)
        yield Segment(row[first:last], style + _STRESSED)
        yield Segment(row[max(first, last) :], style)
        yield NEWLINE
        at += len(row)


def _differing(text: str, other: str) -> tuple[int, int]:
    """Return the characters of a line that differ from its other side, or none if most of it differs or there is no other side."""
    start = shared(text, other)
    end = len(text) - shared(text[start:][::-1], other[start:][::-1])
    return (start, end) if other and 2 * (end - start) <= len(text) else (0, 0)


def _folded(text: str, width: int) -> Iterator[str]:
    """Yield pieces of at most ``width`` cells, and one piece for an empty text."""
    while cell_len(text) > width:
        size = width
        while cell_len(text[:size]) > width:
            size -= 1
        yield text[:size]
        text = text[size:]
    yield text


def stat(file: FileReport, screen: Screen) -> Iterator[Segment]:
    """Yield the file, its kind of change, and the numbers of removed and added lines."""
    signs = [line.sign for line in _lines(file)]
    yield Segment(visible(file.path, screen.encoding), _STRONG)
    yield Segment("" if file.change == "modified" else f" {file.change}")
    yield Segment(f" +{signs.count('+')}", _ADDED)
    yield Segment(f" -{signs.count('-')}", _REMOVED)
    yield NEWLINE


def _pending(report: RunReport, screen: Screen) -> Iterator[Segment]:
    for item in report.migrations:
        for site in item.sites:
            if site.status == "pending":
                yield Segment(visible(f"{site.path}:{site.line}:{site.column}", screen.encoding), _STRONG)
                yield Segment(visible(f": {item.name}: {site.title}", screen.encoding))
                yield NEWLINE


def _notes(notes: Sequence[NoteReport], screen: Screen) -> Iterator[Segment]:
    if not notes:
        return
    left = len(notes)
    yield Segment(f"{count(left, 'place')} {'needs' if left == 1 else 'need'} manual edits:", _STRONG)
    yield NEWLINE
    for note in notes:
        place = visible(f"{note.path}:{note.line}:{note.column}", screen.encoding)
        fits = cell_len(place) + cell_len(note.message) + 4 <= min(screen.width, _PROSE_WIDTH)
        yield Segment(f"  {place}:", _STRONG)
        if fits:
            yield Segment(f" {visible(note.message, screen.encoding)}")
            yield NEWLINE
        else:
            yield NEWLINE
            yield from _prose("    ", note.message, screen)
    yield NEWLINE


def _reason(report: RunReport, item: MigrationReport) -> str:
    return item.reason if len(report.migrations) == 1 else f"{item.name}: {item.reason}"


def _summary(report: RunReport) -> str:
    done = {"check": "pending", "diff": "migrated", "apply": "migrated"}[report.mode]
    number = report.sites(done)
    statuses = {"left": "to do by hand", "suppressed": "suppressed", "skipped": "skipped"}
    stayed = [f"{report.sites(status)} {reason}" for status, reason in statuses.items() if report.sites(status)]
    tail = f" ({', '.join(stayed)})" if stayed else ""
    if not number:
        reasons = "; ".join(_reason(report, item) for item in report.migrations if item.reason)
        return f"Nothing to migrate{tail}: {reasons}." if reasons else f"Nothing to migrate{tail}."
    where = f"{count(number, 'site')} in {count(len(report.files), 'file')}"
    if report.mode == "check":
        names = [item.name for item in report.migrations if any(site.status == "pending" for site in item.sites)]
        command = shlex.join(["opschema", "migrate", *report.asked, "--apply"])
        return f"Pending: {', '.join(names)}, {count(number, 'site')}{tail}; `{command}` migrates."
    if report.mode == "apply":
        return f"Migrated {where}{tail}."
    return f"Would migrate {where}{tail}; --apply writes."

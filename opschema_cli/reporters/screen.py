"""Capabilities of a stream: width in cells, characters, colours; and lines cut to fit it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.reporters.escape import glyph, visible

if TYPE_CHECKING:
    from rich.color import ColorSystem

_TAB = 4
_JOINER, _WIDENER = "\u200d", "\ufe0f"
# Characters of a line that are looked at on each side of a span: no screen shows more.
_REACH = 500


class Glyphs(msgspec.Struct, frozen=True):
    """The characters that draw a frame."""

    bar: str
    branch: str
    cut: str


_UNICODE = Glyphs("│", "├─", "…")
_ASCII = Glyphs("|", "-->", "...")


class View(msgspec.Struct, frozen=True):
    """The part of a line that fits.

    ``starts[i]`` is the cell, in ``text``, of the line's character ``first + i``.
    """

    text: str
    first: int
    starts: Sequence[int]

    def cell(self, column: int) -> int:
        """The cell of a character of the line, counted from 0; of the nearest shown one where it is cut."""
        return self.starts[max(0, min(column - self.first, len(self.starts) - 1))]

    def shows(self, start: int, end: int) -> bool:
        """Whether no character from ``start`` to ``end`` is cut."""
        return self.first <= start and end < self.first + len(self.starts)


class Screen(msgspec.Struct, frozen=True, dict=True):
    """A stream of text, ``width`` cells wide, in an encoding; without ``colors`` it shows no style at all."""

    width: int = 100
    encoding: str = "utf-8"
    colors: ColorSystem | None = None
    _codes: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)

    def paint(self, text: str, style: str) -> str:
        """The text in a style of rich's, where the stream shows any."""
        if self.colors is None or not text:
            return text
        if style not in self._codes:
            from rich.style import Style

            before, _, after = Style.parse(style).render("x", color_system=self.colors).partition("x")
            self._codes[style] = before, after
        before, after = self._codes[style]
        return f"{before}{text}{after}"

    @cached_property
    def glyphs(self) -> Glyphs:
        """Box drawing where the encoding has it, else ASCII."""
        try:
            "".join(msgspec.structs.astuple(_UNICODE)).encode(self.encoding)
        except UnicodeEncodeError:
            return _ASCII
        return _UNICODE

    def view(self, line: str, start: int, end: int, room: int) -> View:
        """Return the line in at most ``room`` cells, cut around its characters ``start`` to ``end``."""
        if len(line) <= min(room, _REACH) and line.isascii() and line.isprintable():
            return View(line, 0, range(len(line) + 1))
        return self.view_from(line, self.first(line, start, end, room), room)

    def first(self, line: str, start: int, end: int, room: int) -> int:
        """Return the first character of a view: the start of the line if ``end`` still fits."""
        low, high = max(0, start - _REACH), start + _REACH
        _, starts = _measure(line[low:high], self.encoding)
        start, end = start - low, min(end, high) - low
        inner = room - 2 * len(self.glyphs.cut)
        wanted = starts[end] - starts[start]
        if wanted > inner:
            wanted = inner // 2
        if not low and (starts[start] + wanted <= inner or starts[-1] <= room):
            return 0
        left = starts[start] - (inner - wanted) // 2
        return low + bisect_left(starts, min(left, max(0, starts[-1] - inner)))

    def view_from(self, line: str, first: int, room: int) -> View:
        """Return the line starting at character ``first``, in at most ``room`` cells."""
        pieces, starts = _measure(line[first : first + _REACH], self.encoding)
        left = self.glyphs.cut if first else ""
        if len(left) + starts[-1] <= room and first + _REACH >= len(line):
            return View(left + "".join(pieces), first, [len(left) + cell for cell in starts])
        cut = self.glyphs.cut
        last = bisect_right(starts, room - len(left) - len(cut)) - 1
        shown = [len(left) + cell for cell in starts[: last + 1]]
        return View(left + "".join(pieces[:last]) + cut, first, shown)


def _measure(line: str, encoding: str) -> tuple[Sequence[str], Sequence[int]]:
    """The text shown for each character, and the screen cell where each starts; one more for the end."""
    if line.isascii() and line.isprintable():
        return line, range(len(line) + 1)
    pieces, starts, cell, before = [], [0], 0, ""
    for character in line:
        piece, width = character, 1
        if character == "\t":
            width = _TAB - cell % _TAB
            piece = " " * width
        elif not " " <= character <= "~" or before == _JOINER:
            piece = glyph(character, encoding)
            width = _width(piece, before)
        cell += width
        pieces.append(piece)
        starts.append(cell)
        # A joiner swallows one character, and what it swallowed joins nothing.
        before = "" if before == _JOINER else piece[-1]
    return pieces, starts


def _width(piece: str, before: str) -> int:
    """Return the cells of a piece after a character. A variation selector widens it, and a joiner merges it with the next one."""
    if piece == _WIDENER:
        return max(0, cells(before + piece) - cells(before))
    return cells(before + piece) if before == _JOINER else cells(piece)


def cells(text: str) -> int:
    """Width in cells of a text without control characters."""
    if text.isascii():
        return len(text)
    # Not at the top: of rich, a report that is piped needs no more than this, and that seldom.
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int, encoding: str = "utf-8") -> list[str]:
    """Return lines of at most ``width`` cells, broken at spaces outside backquotes. Longer words are not split.

    Every space within a line stays, so that quoted text reads as it was.
    """
    if len(text) <= width and text.isascii() and text.isprintable() and not text.endswith(" "):
        return [text]
    lines, line, used = [], "", 0
    for word in re.findall(r" *(?:`[^`]{1,40}`|[^ ])+", visible(text, encoding)):
        size = cells(word)
        if line and used + size > width:
            lines.append(line)
            word = word.lstrip(" ")
            line, used = word, cells(word)
        else:
            line, used = line + word, used + size
    return [*lines, line]

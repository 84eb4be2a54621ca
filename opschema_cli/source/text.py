"""Text with places: spans, edits, and the decoding that keeps a file's bytes restorable.

A span counts characters of the decoded text; lines and columns are derived late, for what is reported.
"""

from __future__ import annotations

import bisect
import codecs
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate, pairwise
from typing import AnyStr, NamedTuple

import msgspec

from opschema_cli.source.declared_encoding import declared_encoding
from opschema_cli.source.decode_error import DecodeError as DecodeError
from opschema_cli.source.keyed_struct import KeyedStruct

_NEWLINE = re.compile(r"\r\n|\r|\n")


class Span(NamedTuple):
    """A half-open range of characters in one file."""

    start: int
    end: int


class SpanSet:
    """Spans that are nested or disjoint, to test whether one of them contains an offset (``offset in spans``)."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span.start, -span.end)):
            if not self._ends or start >= self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, offset: int) -> bool:
        at = bisect.bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]


class NestedSpans:
    """Spans that are nested or disjoint, for finding those around an offset."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(set(spans), key=lambda span: (span.start, -span.end))
        self._starts = [span.start for span in self._spans]
        self._outer: list[int] = []
        for number, span in enumerate(self._spans):
            outer = number - 1
            while outer >= 0 and self._spans[outer].end <= span.start:
                outer = self._outer[outer]
            self._outer.append(outer)

    def innermost(self, offset: int) -> Span | None:
        """Return the innermost span that contains an offset."""
        return next(self.around(offset), None)

    def around(self, offset: int) -> Iterator[Span]:
        """Yield the spans that contain an offset, innermost first."""
        at = bisect.bisect_right(self._starts, offset) - 1
        while at >= 0:
            if offset < self._spans[at].end:
                yield self._spans[at]
            at = self._outer[at]


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A span in a file of the workspace; ``path`` is relative to its root, with ``/``."""

    path: str
    span: Span

    @property
    def is_foreign(self) -> bool:
        """Whether it is outside of the workspace, in an installed package: its path is then absolute, or an invented name."""
        return self.path.startswith(("/", "<"))


class Position(NamedTuple):
    """A place for display: line and column, both from 1, in characters."""

    line: int
    column: int


class Edit(NamedTuple):
    """Replace the text of ``span`` by ``replacement``."""

    span: Span
    replacement: str


class EditConflictError(ValueError):
    """Two edits of one file overlap; applying both would lose one. ``offset`` is where the second begins."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.offset = offset


class Source(KeyedStruct, frozen=True, dict=True):
    """One file's text.

    ``text`` never holds the byte order mark; ``encoding`` is the codec that turns it back into the
    file's bytes (``utf-8-sig`` puts the mark back). Line ends are kept as they are.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    digest: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Path, text and encoding."""
        return self.path, self.text, self.encoding

    def encode(self, text: str | None = None) -> bytes:
        """Return the bytes of ``text`` (default: this text) in the file's own encoding."""
        return (self.text if text is None else text).encode(self.encoding)

    @cached_property
    def _line_starts(self) -> list[int]:
        if "\r" in self.text:
            return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]
        lengths = map((1).__add__, map(len, self.text.split("\n")))  # many times as fast
        return [0, *accumulate(lengths)][:-1]

    def position(self, offset: int) -> Position:
        """Return the line and column of a character offset; an offset past the end counts as the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect.bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line_span(self, line: int) -> Span:
        """Return the span of line ``line`` (from 1), without its line end."""
        starts = self._line_starts
        start, end = starts[line - 1], starts[line] if line < len(starts) else len(self.text)
        # Without copying the line, which may be long and requested often.
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(start, end)

    def line_text(self, line: int) -> str:
        """Return the text of line ``line`` (from 1), without its line end; empty past the end."""
        if not 1 <= line <= len(self._line_starts):
            return ""
        start, end = self.line_span(line)
        return self.text[start:end]

    @property
    def line_count(self) -> int:
        """Number of lines; a final line end opens an empty last one."""
        return len(self._line_starts)

    @property
    def newline(self) -> str:
        """The first line end in the file; a line feed if it has none."""
        match = _NEWLINE.search(self.text)
        return match.group() if match else "\n"


def decode(data: bytes, *, python: bool = False) -> tuple[str, str]:
    """Decode a file's bytes to ``(text, encoding)``.

    UTF-8 with or without a byte order mark; for Python files the PEP 263 cookie is obeyed.

    Raises:
        DecodeError: the bytes are binary, or not text in the declared encoding.
    """
    encoding = "utf-8"
    if data.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif python:
        encoding = declared_encoding(data)
    if encoding != "utf-16" and b"\0" in data:
        at = data.index(b"\0")
        if len(data) > 3 and not (any(data[:64:2]) and any(data[1:64:2])):
            raise DecodeError("it looks like UTF-16 without a byte order mark; save it as UTF-8", at)
        raise DecodeError(f"it holds NUL bytes, the first on line {_line(data, at)}, so it is binary", at)
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} on line {_line(data, error.start)}"
        raise DecodeError(f"{where} is not {encoding}", error.start) from None
    except UnicodeError as error:  # UTF-16 that breaks off
        raise DecodeError(f"it is not {encoding}: {error}") from None


def _line(data: bytes, offset: int) -> int:
    """Return the line, from 1, that contains a byte, in an encoding whose line feed is one byte or has zeros around it."""
    head = data[:offset]
    return head.count(b"\n") + head.replace(b"\r\n", b"").count(b"\r") + 1


_LINE = re.compile(r"[^\r\n]+")


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with spaces in place of some sorted spans, so that offsets and lines stay the same. Nested spans are
    ignored.
    """
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        if start >= at:
            pieces += (text[at:start], _LINE.sub(_spaces, text[start:end]))
            at = end
    return "".join((*pieces, text[at:]))


def _spaces(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with all edits applied; identical edits count once.

    Raises:
        EditConflictError: two edits overlap, or two insertions share one place.
    """
    ordered = sorted(set(edits))
    for before, after in pairwise(ordered):
        if after.span.start < before.span.end or after.span.start == before.span.start:
            raise EditConflictError(f"edits of {before.span} and {after.span} overlap", after.span.start)
    pieces: list[str] = []
    at = 0
    for span, replacement in ordered:
        pieces += text[at : span.start], replacement
        at = span.end
    return "".join([*pieces, text[at:]])


_WORDS = bytes(byte if byte >= 128 or bytes([byte]).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))
"""A table that turns all ASCII characters outside of words into spaces."""


def words_in(text: str) -> set[str]:
    """Return the words of a text, treating other non-ASCII characters as parts of words; this takes half the time of a pattern."""
    data = text.encode("utf-8", "surrogatepass").translate(_WORDS)
    return set(data.decode("utf-8", "surrogatepass").split())


_ASCII_WORDS = bytes(byte if bytes([byte]).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))


def ascii_words_in(data: bytes) -> set[bytes]:
    """Return the words of bytes, treating all non-ASCII characters as separators."""
    return set(data.translate(_ASCII_WORDS).split())


def places_of(word: AnyStr, text: AnyStr) -> Iterator[int]:
    """Yield the places where a word begins in a text, with no other letter, digit or underscore beside it."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (_is_in_word(text[max(0, at - 1) : at]) or _is_in_word(text[end : end + 1])):
            yield at
        at = text.find(word, end)


def holds_word(word: AnyStr, text: AnyStr) -> bool:
    """Whether a text contains a word, with no other letter, digit or underscore beside it."""
    return next(places_of(word, text), None) is not None


def may_begin_statement(keyword: str, text: str) -> bool:
    """Whether a statement of a Python text may begin with a keyword: at the start of a line, or after a colon or semicolon."""
    return any(_is_behind_statement(text, at) for at in places_of(keyword, text))


def _is_behind_statement(text: str, at: int) -> bool:
    while at > 0 and text[at - 1] in " \t\f":
        at -= 1
    return at == 0 or text[at - 1] in "\r\n:;"


def _is_in_word(character: str | bytes) -> bool:
    return character.isalnum() or character in ("_", b"_")


def is_found(pattern: re.Pattern[AnyStr], text: AnyStr, parts: Iterable[AnyStr], reach: int) -> bool:
    """Whether a text contains a match of a pattern. Each match contains one of ``parts``, with at most ``reach`` characters
    before and after it; this is several times faster than searching for the pattern alone.
    """
    for part in parts:
        at = text.find(part)
        while at >= 0:
            end = at + len(part) + reach
            found = pattern.search(text, max(0, at - reach), end)
            # At the end of what is searched a word seems to end.
            if found is not None and (found.end() < end or pattern.match(text, found.start()) is not None):
                return True
            at = text.find(part, at + len(part))
    return False

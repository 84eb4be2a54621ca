"""Values of C++ string literals, and the place in the file of each character of a value."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from opschema_cli.source.text import Span


class Run(msgspec.Struct, frozen=True, array_like=True):
    """A part of a value, ``length`` characters long, and the place of its text, character by character or as a unit."""

    length: int
    span: Span


class Literal(msgspec.Struct, frozen=True, array_like=True):
    """The value of a string literal, or of adjacent ones; ``runs`` are its parts."""

    value: str
    runs: tuple[Run, ...]

    def span(self, within: Span) -> Span:
        """Return the span of a part of the value; for an empty part, the place where it would be inserted."""
        start, end = within
        if start >= end:
            at = self._edge(start, behind=False)
            return Span(at, at)
        return Span(self._edge(start, behind=False), self._edge(end, behind=True))

    def _edge(self, index: int, *, behind: bool) -> int:
        """Return the start of the character at ``index`` or, with ``behind``, the end of the previous one."""
        at = 0
        for run in self.runs:
            inside = at < index <= at + run.length if behind else at <= index < at + run.length
            if inside and run.span.end - run.span.start == run.length:
                return run.span.start + index - at
            if inside:
                return run.span.end if behind else run.span.start
            at += run.length
        return self.runs[-1].span.end if self.runs else 0


_PLAIN = re.compile(r'(?:u8|[uUL])?"((?:[^"\\\r\n]|\\(?:\r\n|[\s\S]))*)"')
_RAW = re.compile(r'(?:u8|[uUL])?R"([^()\\\s"]{0,16})\(([\s\S]*)\)\1"')
_ESCAPE = re.compile(
    r"\\(?:(?P<newline>\r?\n)|(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]+)|u(?P<short>[0-9a-fA-F]{4})"
    r"|U(?P<long>[0-9a-fA-F]{8})|(?P<simple>['\"?\\abfnrtv]))"
)
_SIMPLE = dict(zip("'\"?\\abfnrtv", "'\"?\\\a\b\f\n\r\t\v", strict=True))


def read_literal(text: str, start: int) -> Literal | None:
    """Read the value of one literal whose text begins at ``start`` of its file; None if it is not a literal, or has a suffix or
    an unusual escape.
    """
    raw = _RAW.fullmatch(text)
    if raw is not None:
        span = Span(start + raw.start(2), start + raw.end(2))
        return Literal(raw[2], (Run(len(raw[2]), span),))
    plain = _PLAIN.fullmatch(text)
    return _unescaped(plain[1], start + plain.start(1)) if plain is not None else None


def _unescaped(text: str, start: int) -> Literal | None:
    pieces: list[str] = []
    runs: list[Run] = []

    def add(piece: str, at: int, end: int) -> None:
        pieces.append(piece)
        runs.append(Run(len(piece), Span(start + at, start + end)))

    at = 0
    while (slash := text.find("\\", at)) >= 0:
        match = _ESCAPE.match(text, slash)
        character = _character(match) if match is not None else None
        if match is None or character is None:
            return None
        add(text[at:slash], at, slash)
        add(character, slash, match.end())
        at = match.end()
    add(text[at:], at, len(text))
    return Literal("".join(pieces), tuple(runs))


def _character(match: re.Match[str]) -> str | None:
    if match["newline"]:
        return ""
    if match["simple"]:
        return _SIMPLE[match["simple"]]
    code = int(match["octal"], 8) if match["octal"] else int((match["hex"] or match["short"] or match["long"])[-9:], 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else None


def joined(parts: Iterable[Literal]) -> Literal:
    """Join adjacent literals."""
    items = list(parts)
    return Literal("".join(item.value for item in items), tuple(run for item in items for run in item.runs))

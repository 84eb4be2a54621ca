"""Places of the engine, which count characters, as positions of the protocol, which count code units from line 0."""

from __future__ import annotations

from typing import Literal, TypeAlias

from lsprotocol import types

from opschema_cli.source.text import Source, Span

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_SIZES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def units(text: str, encoding: Encoding) -> int:
    """The length of a text in code units."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    codec, size = _SIZES[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def position_of(source: Source, offset: int, encoding: Encoding) -> types.Position:
    """The position of a character."""
    line, column = source.position(offset)
    start = source.line_span(line).start
    return types.Position(line - 1, units(source.text[start : start + column - 1], encoding))


def range_of(source: Source, span: Span, encoding: Encoding) -> types.Range:
    """The range of a span."""
    return types.Range(position_of(source, span.start, encoding), position_of(source, span.end, encoding))


def offset_of(source: Source, position: types.Position, encoding: Encoding) -> int:
    """The character at a position; past the end of a line or text its end, inside of a character its beginning."""
    if position.line >= source.line_count:
        return len(source.text)
    start, end = source.line_span(position.line + 1)
    line = source.text[start:end]
    if line.isascii() or encoding == "utf-32":
        return min(start + position.character, end)
    codec, size = _SIZES[encoding]
    head = line.encode(codec, "surrogatepass")[: position.character * size]
    return start + len(head.decode(codec, "ignore"))


def span_of(source: Source, wanted: types.Range, encoding: Encoding) -> Span:
    """The span of a range."""
    return Span(offset_of(source, wanted.start, encoding), offset_of(source, wanted.end, encoding))

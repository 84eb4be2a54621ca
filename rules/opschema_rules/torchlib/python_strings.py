"""Python string literals as values with the place of each character, if they contain no escapes."""

from __future__ import annotations

import re

from opschema_cli.source.cpp_strings import Literal, Run
from opschema_cli.source.text import Source, Span

_PART = re.compile(r"(?:\s|#[^\n]*\n|\\\n)*([rRuU]?)(\"\"\"|'''|\"|')")


def read_plain(source: Source, span: Span) -> Literal | None:
    """The literal at a place, or several side by side; None if it is anything else, or has an escape."""
    pieces: list[str] = []
    runs: list[Run] = []
    at = span.start
    while at < span.end:
        match = _PART.match(source.text, at, span.end)
        end = source.text.find(match[2], match.end(), span.end) if match is not None else -1
        if match is None or end < 0:
            return None
        piece = source.text[match.end() : end]
        if "\\" in piece or "\r" in piece or (len(match[2]) == 1 and "\n" in piece):
            return None
        pieces.append(piece)
        runs.append(Run(len(piece), Span(match.end(), end)))
        at = end + len(match[2])
    return Literal("".join(pieces), tuple(runs)) if runs else None

"""Directives in the comments of C++: ``// opschema: ignore[CODE]`` and ``/* opschema: ignore[CODE] */``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.source.cpp_text import parts_of_file
from opschema_cli.source.text import Source, Span, blanked

_START = r"(?:(?<!/)//+|(?<!/)/\*+|#)[ \t]*(?:#[ \t]*)?"
_CONTENT = re.compile(r"(?:\A|(?<=[\r\n]))[^\S\r\n]*\S")


def cpp_directives(source: Source, body: str) -> Iterator[tuple[re.Match[str], Span]]:
    """The matches of a pattern at the beginning of a comment or after white space in it, each with the comment."""
    pattern = re.compile(_START + body)
    for kind, start, end in parts_of_file(source.text):
        for match in pattern.finditer(source.text, start, end) if kind == "comment" else ():
            if match.start() == start or source.text[match.start() - 1].isspace():
                yield match, Span(start, end)


def cpp_content_lines(source: Source) -> list[int]:
    """Return the starts of the lines that contain more than a comment."""
    comments = ((start, end) for kind, start, end in parts_of_file(source.text) if kind == "comment")
    return [match.start() for match in _CONTENT.finditer(blanked(source.text, comments))]

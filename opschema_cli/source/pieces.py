"""Parts of a string with their places: names in a list, arguments of a call, groups of a match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opschema_cli.source.text import Span

_BRACKET_OR_COMMA = re.compile(r"[(\[{]|[)\]}]|,")


class Piece(NamedTuple):
    """A part of a string without the space around it."""

    text: str
    span: Span


def group(found: re.Match[str], number: int, at: int = 0) -> Piece:
    """Return a group of a match in a string that starts at ``at``; empty if it did not match."""
    return Piece(found[number] or "", Span(at + found.start(number), at + found.end(number)))


def pieces(text: str, ends: Iterable[int], at: int = 0) -> Iterator[Piece]:
    """Yield the parts of a string that starts at ``at``, between one-character separators at the places ``ends``."""
    start = 0
    for end in (*ends, len(text)):
        part = text[start:end]
        lead = len(part) - len(part.lstrip())
        yield Piece(part.strip(), Span(at + start + lead, at + start + max(lead, len(part.rstrip()))))
        start = end + 1


def arguments(text: str, at: int = 0) -> list[Piece] | None:
    """Return the arguments in a call's parentheses, split at commas outside of brackets; None if the brackets do not match."""
    depth, ends = 0, list[int]()
    for mark in _BRACKET_OR_COMMA.finditer(text):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth < 0:
            return None
        if mark[0] == "," and not depth:
            ends.append(mark.start())
    return None if depth else list(pieces(text, ends, at)) if text.strip() else []

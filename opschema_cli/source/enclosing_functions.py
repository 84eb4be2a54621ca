"""Finds the top-level functions of a Python file around some places, in its text alone and in linear time."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

import msgspec

_STATEMENT = re.compile(r"^(?![ \t)\]}#\r\n])", re.MULTILINE)
_DEF = re.compile(r"def[ \t]+(\w+)[ \t]*\(")
_BRACKET = re.compile(r"[()\[\]{},=*]")


class EnclosingFunction(msgspec.Struct, frozen=True):
    """A function's name, and whether it can be called without arguments."""

    name: str
    takes_nothing: bool


def enclosing_functions(code: str, places: Sequence[int]) -> list[EnclosingFunction]:
    """Return the functions around these places, each once. ``code`` is the text with strings and comments blanked."""
    starts = [match.start() for match in _STATEMENT.finditer(code)]
    found: dict[str, EnclosingFunction] = {}
    for place in places:
        index = bisect_right(starts, place) - 1
        head = _DEF.match(code, starts[index]) if index >= 0 else None
        if head is not None and head.end() <= place:
            found.setdefault(head[1], EnclosingFunction(head[1], _takes_nothing(code, head.end())))
    return list(found.values())


def _takes_nothing(code: str, start: int) -> bool:
    """Whether all parameters after an opening bracket have defaults, or are ``*args`` and ``**kwargs``."""
    depth, begun, excused = 1, start, False
    for match in _BRACKET.finditer(code, start):
        mark = match[0]
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        elif depth == 1 and mark in "=*":
            excused = True
        if depth == 0 or (depth == 1 and mark == ","):
            if code[begun : match.start()].strip() not in ("", "/") and not excused:
                return False
            begun, excused = match.end(), False
        if depth == 0:
            return True
    return False

"""Finds calls in Python text without parsing it: if many files mention a function and few call it, parsing all of them is slow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.source.text import Span

_MUTE = re.compile(
    r"#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
_MARK = re.compile(r"[()\[\]{},]|\blambda\b")
_ARGUMENT = re.compile(r"\s*(?:(?P<named>\*|\w+\s*=(?!=))|\S)")
MAX_CALL = 10_000
"""Maximum number of characters of a call to read."""


class CallText(msgspec.Struct, frozen=True, array_like=True):
    """A call: the function's name, its place, and the number of arguments."""

    name: str
    span: Span
    count: int


def counted_calls(text: str, pattern: re.Pattern[str]) -> Iterator[CallText]:
    """Yield the calls that pass all arguments by position. ``pattern`` ends with the parenthesis; its first group is the name."""
    code = _MUTE.sub(lambda found: "'" + "_" * (len(found[0]) - 1) if found[0][0] != "#" else " " * len(found[0]), text)
    counts: dict[int, int | None] = {}
    done = 0
    for found in pattern.finditer(code):
        start = found.end()
        if start > done:
            done = start + MAX_CALL
            for end, opened in _brackets(code, start):
                counts[opened.start] = opened.count if opened.known else None
                done = end if opened.start == start else done
        count = counts.get(start)
        if count is not None:
            yield CallText(found[1], Span(*found.span(1)), count)


class _Bracket(msgspec.Struct):
    """A bracket: the places after it and after its last comma, the number of items before that, and whether all are plain."""

    start: int
    begin: int
    count: int = 0
    known: bool = True


def _brackets(code: str, start: int) -> Iterator[tuple[int, _Bracket]]:
    """Yield the bracket before ``start`` and nested ones with the places of their ends, if they are closed, in one pass."""
    waiting = [_Bracket(start, start)]
    for mark in _MARK.finditer(code, start, start + MAX_CALL):
        last = waiting[-1]
        if mark[0] == "lambda":
            last.known = False
        elif mark[0] in "([{":
            waiting.append(_Bracket(mark.end(), mark.end()))
        else:
            argument = _ARGUMENT.match(code, last.begin, mark.start())
            last.known = last.known and (argument is None or argument["named"] is None)
            last.count += argument is not None
            last.begin = mark.end()
            if mark[0] != ",":
                yield mark.start(), waiting.pop()
            if not waiting:
                return

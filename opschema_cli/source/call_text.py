"""Calls in Python text, found without parsing it: for a function that many files mention and few call, parsing all is slow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.source.text import Span

_MUTE = re.compile(
    r"#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
_MARK = re.compile(r"[()\[\]{},=]|\blambda\b")
_KEYWORD = re.compile(r"\s*(?:\*|\w+\s*=(?!=))")
MAX_CALL = 10_000
"""Most characters of a call that is read."""


class CallText(msgspec.Struct, frozen=True, array_like=True):
    """A call: the function's name, its place, and the number of arguments."""

    name: str
    span: Span
    count: int


def counted_calls(text: str, pattern: re.Pattern[str]) -> Iterator[CallText]:
    """The calls that pass all arguments by position. ``pattern`` ends with the parenthesis; its first group is the name."""
    code = _MUTE.sub(lambda found: "'" + "_" * (len(found[0]) - 1) if found[0][0] != "#" else " " * len(found[0]), text)
    for found in pattern.finditer(code):
        count = _count(code, found.end())
        if count is not None:
            yield CallText(found[1], Span(*found.span(1)), count)


def _count(code: str, start: int) -> int | None:
    """The number of arguments of a call whose parenthesis opens before ``start``; None if it is not known, or some have names."""
    depth, begin, count = 0, start, 0
    for mark in _MARK.finditer(code, start, start + MAX_CALL):
        if mark[0] == "lambda":
            return None
        if mark[0] in "([{":
            depth += 1
        elif depth and mark[0] in ")]}":
            depth -= 1
        elif not depth and mark[0] in ",)":
            argument = code[begin : mark.start()]
            if _KEYWORD.match(argument) is not None:
                return None
            count += bool(argument.strip())
            if mark[0] == ")":
                return count
            begin = mark.end()
    return None

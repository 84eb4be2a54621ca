"""Calls of op classes in benchmarks and tests, read from their texts: most of these files are parsed for nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from opschema_cli.readings import Reading

MAX_LENGTH = 2000
"""Most characters of a call that is read."""

_CALL = re.compile(r"(?<![\w.])([A-Z]\w*Op)\(")
_TEXT = re.compile(
    r"""(?=[#"'])(?:#[^\n]*|"{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3}|'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'{3}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""",
    re.DOTALL,
)
_BEGINS_TEXT = re.compile(r"[#\"']")
_PARENTHESIS = re.compile(r"[()]")


class Construction(msgspec.Struct, frozen=True, array_like=True):
    """What looks like a call of a class: its name, place and arguments; the keywords have the places of their names."""

    name: str
    start: int
    end: int
    positional: int
    keywords: dict[str, int]


def _read(text: str) -> list[Construction]:
    return [item for match in _CALL.finditer(text) for item in _parsed(text, match[1], match.start())]


def _parsed(text: str, name: str, start: int) -> Iterator[Construction]:
    written = _call(text[start : start + MAX_LENGTH], len(name))
    if not written.isascii():
        return
    try:
        call = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if not isinstance(call, ast.Call) or any(isinstance(item, ast.Starred) for item in call.args):
        return
    lines = written.split("\n")
    keywords: dict[str, int] = {}
    for word in call.keywords:
        if word.arg is None:
            return
        keywords[word.arg] = start + sum(len(item) + 1 for item in lines[: word.lineno - 1]) + word.col_offset
    yield Construction(name, start, start + len(written), len(call.args), keywords)


def _call(text: str, opening: int) -> str:
    """The call with which a text begins, up to the end of the parentheses that open there; empty if there is none."""
    found = text[: _end(text, opening)]
    return text[: _end(_TEXT.sub(_blank, text), opening)] if _BEGINS_TEXT.search(found) else found


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _end(text: str, opening: int) -> int:
    depth = 0
    for match in _PARENTHESIS.finditer(text, opening):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.end()
    return 0


CONSTRUCTIONS = Reading("tileops constructions", _read, list[Construction])

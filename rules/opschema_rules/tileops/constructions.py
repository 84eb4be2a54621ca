"""Calls of op classes in benchmarks and tests, read from their texts: most of these files are parsed for nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

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
_IMPORT = re.compile(r"\bfrom[ \t]+[\w.]+[ \t]+import[ \t]+(\([^)]*\)|[^\n(]+)")
_DEFINED = re.compile(r"\b(?:class|def|as)[ \t]+(\w+)")
_ASSIGNED = re.compile(r"^[ \t]*(\w+)[ \t]*(?::[^\n=]*)?=(?!=)", re.MULTILINE)
_RAISES = re.compile(r"\braises\b|\bassertRaises|\bxfail\b|\btry:")


class Construction(msgspec.Struct, frozen=True, array_like=True):
    """A call of a class: its name, place and arguments; the keywords have the places of their names."""

    name: str
    start: int
    end: int
    positional: int
    keywords: dict[str, int]


def _read(text: str) -> list[Construction]:
    found: list[Construction] = []
    plain = _TEXT.sub(_blank, text)
    lines, known, number, at = plain.split("\n"), _imported(plain), 0, 0
    for match in _CALL.finditer(plain):
        name, start = match[1], match.start()
        number, at = number + plain.count("\n", at, start), start
        if name in known and not _may_be_refused(lines, number):
            found += _parsed(text, plain, name, start)
    return found


def _blank(match: re.Match[str]) -> str:
    return "\n".join(" " * len(line) for line in match[0].split("\n"))


def _imported(plain: str) -> set[str]:
    """The names that are nothing but what one import from the same name brings."""
    found = {name for names in _IMPORT.findall(plain) for name in re.findall(r"\w+", names)}
    return found.difference(_DEFINED.findall(plain), _ASSIGNED.findall(plain))


def _may_be_refused(lines: Sequence[str], number: int) -> bool:
    """Whether a call on a line stands in a block, or under a mark, that expects an error."""
    depth = _indent(lines[number])
    if _RAISES.search(lines[number]):
        return True
    for text in reversed(lines[:number]):
        bare, indent = text.lstrip(), _indent(text)
        if depth == 0 and (not bare or bare[0] != "@") and indent == 0 and not bare.startswith(")"):
            return False
        if not bare or indent > depth or (indent == depth and bare[0] != "@" and depth):
            continue
        if _RAISES.search(text):
            return True
        depth = indent + 1 if bare[0] == ")" else indent
    return False


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _parsed(text: str, plain: str, name: str, start: int) -> Iterator[Construction]:
    end = _end(plain, start + len(name))
    if end is None or not text.isascii():
        return
    try:
        call = ast.parse(text[start:end], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if not isinstance(call, ast.Call) or any(isinstance(item, ast.Starred) for item in call.args):
        return
    lines = text[start:end].split("\n")
    keywords: dict[str, int] = {}
    for word in call.keywords:
        if word.arg is None:
            return
        keywords[word.arg] = start + sum(len(item) + 1 for item in lines[: word.lineno - 1]) + word.col_offset
    yield Construction(name, start, end, len(call.args), keywords)


def _end(plain: str, opening: int) -> int | None:
    """The end of the parentheses that open at a place of a text without strings and comments."""
    depth = 0
    for index in range(opening, min(len(plain), opening + MAX_LENGTH)):
        depth += {"(": 1, ")": -1}.get(plain[index], 0)
        if not depth:
            return index + 1
    return None


CONSTRUCTIONS = Reading("tileops constructions", _read, list[Construction])

"""Calls of op classes in benchmarks and tests, read from their texts: most of these files are parsed for nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.readings import Reading

MAX_LENGTH = 2000
"""Maximum number of characters of a call to read."""

_CALL = re.compile(r"(?<![\w.])([A-Z]\w*Op)\(")
_PART = re.compile(
    r"""#[^\n]*|"{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3}|'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'{3}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[][(){},]""",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"(?:\s|#[^\n]*\n)*(?:(\*)|(\w+)\s*=(?!=)|(?=[^\s#]))")


class Construction(msgspec.Struct, frozen=True, array_like=True):
    """Text that looks like a call of a class: its name, place and arguments; the keywords have the places of their names."""

    name: str
    start: int
    positional: int
    keywords: dict[str, int]


def _read(text: str) -> list[Construction]:
    return [item for match in _CALL.finditer(text) for item in _parsed(text, match[1], match.start())]


def _parsed(text: str, name: str, start: int) -> Iterator[Construction]:
    *places, end = _arguments(text, start + len(name))
    found = [_ARGUMENT.match(text, place, end) for place in places]
    written = [match for match in found if match is not None]
    if places and not any(match[1] for match in written):
        keywords = {match[2]: match.start(2) for match in written if match[2]}
        yield Construction(name, start, sum(not match[2] for match in written), keywords)


def _arguments(text: str, opening: int) -> list[int]:
    """Return the places after the parenthesis and the commas of a call, and after its end; only the first if it is not closed."""
    found, depth = [opening + 1], 0
    for match in _PART.finditer(text, opening, opening + MAX_LENGTH):
        part = match[0]
        if part in "([{":
            depth += 1
        elif part in ")]}":
            depth -= 1
            if not depth:
                return [*found, match.end() - 1]
        elif part == "," and depth == 1:
            found.append(match.end())
    return [opening]


CONSTRUCTIONS = Reading("tileops constructions", _read, list[Construction])

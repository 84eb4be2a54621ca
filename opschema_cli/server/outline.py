"""The cursor's position in a YAML text, derived from the lines alone, because a text rarely parses while it is being typed."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

_KEY = re.compile(
    r"""(?P<lead>[ ]*(?:-[ ]+)*)(?:(?P<quote>["'])?(?P<key>[\w.:,-]+(?:, [\w]+)*)(?P=quote)?[ ]*:(?=[ ]|$))?"""
)
_PART = re.compile(r"[\w.:-]*$")
ITEM = "*"
"""A step into a list."""


class Cursor(msgspec.Struct, frozen=True):
    """The keys above the cursor, outermost first; whether a key or a value is typed there, and how far it is typed."""

    path: tuple[str, ...]
    kind: Literal["key", "value"]
    typed: str


def cursor_at(text: str, offset: int) -> Cursor:
    """The cursor at an offset."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:offset]
    match = _KEY.match(line)
    assert match is not None  # all of it may be empty
    steps = _steps(match["lead"])
    above = _above(text[:start], _indent(line) + 1 if steps else _indent(line))
    inner = line[match.end() :] if match["key"] else line[match.end("lead") :]
    opened = inner.rfind("{") if inner.count("{") > inner.count("}") else -1
    typed = (_PART.search(line) or match).group()
    path = (*above, *steps, *([match["key"]] if match["key"] else []))
    if opened >= 0:
        return _in_braces(path, inner[opened + 1 :], typed)
    if match["key"]:
        return Cursor((*path, ITEM) if "[" in inner else path, "value", typed)
    return Cursor(path, "key", typed)


def _in_braces(path: tuple[str, ...], inner: str, typed: str) -> Cursor:
    part = inner.rsplit(",", 1)[-1] if "[" not in inner.rsplit(":", 1)[-1] else inner
    key, colon, value = part.rpartition(": ")
    if not colon:
        return Cursor(path, "key", typed)
    name = key.rsplit(",", 1)[-1].strip().strip("'\"")
    return Cursor((*path, name, ITEM) if "[" in value else (*path, name), "value", typed)


def _above(text: str, indent: int) -> tuple[str, ...]:
    """The keys that the lines before lead to for a line with an indent."""
    found: list[str] = []
    for line in reversed(text.split("\n")):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _KEY.match(line)
        if match is None or not match["key"]:
            continue
        column, steps = len(match["lead"]), _steps(match["lead"])
        if column < indent:
            found += [match["key"], *steps]
            indent = _indent(line) + 1 if steps else column
        elif steps and column == indent:  # the first key of the same item
            found += steps
            indent = _indent(line) + 1
        if not indent:
            break
    return tuple(reversed(found))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _steps(lead: str) -> list[str]:
    return [ITEM] * lead.count("-")

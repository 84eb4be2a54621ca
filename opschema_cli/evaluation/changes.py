"""Names whose lists and dictionaries a file changes, going by its text."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.python import PythonFile

_METHODS = re.compile(
    r"\.[\s\\]*(?:append|extend|insert|add|update|pop|popitem|remove|discard|clear|setdefault|sort|reverse)\s*\("
)
_ITEMS = re.compile(r"\](?=[\s\\]*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=))")
_DELETED = re.compile(r"\bdel\s+([A-Za-z_]\w*)[ \t]*\[")
_SPACE = " \t\r\n\\"
_LONGEST = 1000
"""Characters that are looked back, at most."""


_REMOVALS = re.compile(
    r"(?<![\w.])([A-Za-z_]\w*)\.(?:popitem|clear|pop)\s*\(\s*(?:[\"'](\w+)[\"'])?|\bdel\s+([A-Za-z_]\w*)\[(?:[\"'](\w+)[\"']\])?"
)


class Changes(msgspec.Struct, frozen=True):
    """Names of one file whose containers are changed: by methods, and how often by writes to items; the keys that are taken
    out, with an empty one where they are not known; the attributes, of any object, whose containers are changed; and names
    whose containers hold others that are.
    """

    by_methods: frozenset[str]
    by_items: Counter[str]
    removed: dict[str, set[str]]
    attributes: frozenset[str]
    inner: frozenset[str]


@cached_on_argument
def changes_in(file: PythonFile) -> Changes:
    """The changes that the text of a file shows, in whichever function."""
    text = file.source.text
    found = [_holder(text, match.start()) for match in _METHODS.finditer(text)]
    written = [_holder(text, match.end()) for match in _ITEMS.finditer(text)]
    methods = {name for name, depth in found if not depth}.union(_DELETED.findall(text))
    items = Counter(name for name, depth in written if depth == 1)
    inner = frozenset([name for name, depth in found if depth] + [name for name, depth in written if depth > 1])
    removed: dict[str, set[str]] = {}
    for name, key, deleted, other in _REMOVALS.findall(text):
        removed.setdefault(name or deleted, set()).add(key or other)
    attributes = frozenset(name[1:] for name in (*methods, *items, *inner) if name.startswith("."))
    return Changes(frozenset(methods), items, removed, attributes, inner)


def _holder(text: str, end: int) -> tuple[str, int]:
    """The name of the container whose item or method ends at ``end``, with a dot before that of an attribute; and the number of
    indexes behind it.
    """
    floor, depth = max(0, end - _LONGEST), 0
    at = _before(text, end, floor, _SPACE)
    while at > floor and text[at - 1] == "]":
        at = _before(text, _opening(text, at, floor), floor, _SPACE)
        depth += 1
    start = at
    while start > floor and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    before = _before(text, start, floor, " \t")
    return f".{text[start:at]}" if text[before - 1 : before] == "." else text[start:at], depth


def _before(text: str, at: int, floor: int, skipped: str) -> int:
    while at > floor and text[at - 1] in skipped:
        at -= 1
    return at


def _opening(text: str, end: int, floor: int) -> int:
    """Where the bracket opens that closes before ``end``; ``floor`` if that is not behind it."""
    depth = 0
    for at in range(end - 1, floor - 1, -1):
        depth += (text[at] == "]") - (text[at] == "[")
        if not depth:
            return at
    return floor

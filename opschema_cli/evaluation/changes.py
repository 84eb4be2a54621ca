"""Names whose lists and dictionaries a file changes, going by its text."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.python import PythonFile

_CHANGES = re.compile(
    r"(?<![\w.])([A-Za-z_]\w*)(?:\.(?:append|extend|insert|add|update|pop|popitem|remove|discard|clear|setdefault|sort|reverse)"
    r"\s*\(|(\[[^\[\]\n]*\]\s*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)))|\bdel\s+([A-Za-z_]\w*)\["
)


_REMOVALS = re.compile(
    r"(?<![\w.])([A-Za-z_]\w*)\.(?:popitem|clear|pop)\s*\(\s*(?:[\"'](\w+)[\"'])?|\bdel\s+([A-Za-z_]\w*)\[(?:[\"'](\w+)[\"']\])?"
)


class Changes(msgspec.Struct, frozen=True):
    """Names of one file whose containers are changed: by methods, and how often by writes to items; and the keys that are taken
    out, with an empty one where they are not known.
    """

    by_methods: frozenset[str]
    by_items: Counter[str]
    removed: dict[str, set[str]]


@cached_on_argument
def changes_in(file: PythonFile) -> Changes:
    """The changes that the text of a file shows, in whichever function."""
    methods: set[str] = set()
    items: Counter[str] = Counter()
    for name, item, deleted in _CHANGES.findall(file.source.text):
        if item:
            items[name] += 1
        else:
            methods.add(name or deleted)
    removed: dict[str, set[str]] = {}
    for name, key, deleted, other in _REMOVALS.findall(file.source.text):
        removed.setdefault(name or deleted, set()).add(key or other)
    return Changes(frozenset(methods), items, removed)

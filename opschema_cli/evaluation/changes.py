"""Names whose lists and dictionaries are changed in a file."""

from __future__ import annotations

from collections import Counter

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.python import PythonFile


class Changes(msgspec.Struct, frozen=True):
    """Names of one file whose containers are changed: by methods, and by the number of writes to items. Also the removed keys
    (an empty one if they are not known); the keys whose value a statement other than an assignment changes; the attributes, of
    any object, whose containers are changed; and names whose containers hold changed containers.
    """

    by_methods: frozenset[str]
    by_items: Counter[str]
    removed: dict[str, set[str]]
    overwritten: dict[str, set[str]]
    attributes: frozenset[str]
    inner: frozenset[str]


@cached_on_argument
def changes_in(file: PythonFile) -> Changes:
    """Return the changes that the code of a file makes, in any function."""
    methods, inner, items = set[str](), set[str](), Counter[str]()
    removed: dict[str, set[str]] = {}
    overwritten: dict[str, set[str]] = {}
    for change in file.facts.changes:
        if change.depth > (change.kind in ("write", "delete")):
            inner.add(change.holder)
        elif change.kind == "write":
            items[change.holder] += 1
            if change.key:
                overwritten.setdefault(change.holder, set()).add(change.key)
        else:
            methods.add(change.holder)
            if change.kind != "method":
                removed.setdefault(change.holder, set()).add(change.key)
    attributes = frozenset(name[1:] for name in (*methods, *items, *inner) if name.startswith("."))
    return Changes(frozenset(methods), items, removed, overwritten, attributes, frozenset(inner))

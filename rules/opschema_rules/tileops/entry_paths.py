"""Paths into an entry: the place that findings show, and the name in messages."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.phrases import excerpt
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile, scalar_value
from opschema_rules.tileops.model import ManifestFile, OpEntry
from opschema_rules.tileops.schema_validator import Path

MAX_SHOWN = 60
"""Maximum number of characters of a value to quote in full in a message."""


def key_at(entry: OpEntry, path: Path) -> Node | None:
    """The key that the last step of a path names; None for an item, and for a key that a merge brings in."""
    owner = entry.get(*path[:-1]) if path else None
    pair = owner.pair(path[-1]) if owner is not None and isinstance(path[-1], str) else None
    return pair[0] if pair else None


def owner_span(entry: OpEntry, path: Path) -> Span:
    """The span for a finding about an entire mapping: its key, or on the first line of a list's item."""
    for length in range(len(path), 0, -1):
        key = key_at(entry, path[:length])
        if key is not None:
            return key.span
        item = entry.get(*path[:length])
        if item is not None and isinstance(path[length - 1], int):
            return first_line(entry.file, item)
    return entry.key.span


def value_span(entry: OpEntry, path: Path) -> Span:
    """The span for a finding about a value: the value itself if it is on one line, else its key."""
    node = entry.get(*path)
    if node is None or not path or node.start == node.end or first_line(entry.file, node) != node.span:
        return owner_span(entry, path)
    return node.span


def first_line(file: YamlFile, node: Node) -> Span:
    """Return the span of the first line of a node."""
    newline = file.source.text.find("\n", node.start, node.end)
    return Span(node.start, newline if newline >= 0 else node.end)


def path_name(path: Path) -> str:
    """A path as messages write it: `signature.inputs.x`, `workloads[0]`; the entry itself for the empty one."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"`{text[1:]}`" if text else "the entry"


def shown(file: YamlFile, node: Node) -> str:
    """A value as messages show it."""
    if node.kind != "scalar":
        return "empty" if not node.items else "a mapping" if node.is_mapping else "a list"
    if not node.value.strip() and (node.style or not node.value):
        return "blank" if node.value else "empty"
    text = file.source.text[node.start : node.end]
    return "text" if "\n" in text else f"`{excerpt(text, MAX_SHOWN)}`"


def kind_of_key(key: Node) -> str:
    """Return the kind of a key that is not a string."""
    value = scalar_value(key)
    if value is None:
        return "null"
    return "a boolean" if isinstance(value, bool) else "a number"


def entry_at(subject: ManifestFile, offset: int) -> OpEntry | None:
    """The entry of a file that a place is in."""
    for entry in subject.manifest.entries:
        if entry.file is subject.file and entry.key.start <= offset <= max(entry.node.end, entry.key.end):
            return entry
    return None


def mappings(root: Node | None) -> Iterator[Node]:
    """The mappings at and below a node that are not empty; aliases are not followed."""
    waiting = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if node.items:
            if node.kind == "mapping":
                yield node
            waiting += [item for item in node.items if item.items]

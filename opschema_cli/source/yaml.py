"""YAML as a tree of nodes with their places.

Built by :mod:`opschema_cli.source.yaml_compose` from libyaml's events (ruamel.yaml's C parser), never constructed into objects:
unsafe tags stay text. Scalars are read as YAML 1.1 (``yaml_scalars``), edited by ``yaml_edit``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml_scalars import as_float, plain_value

MAX_DEPTH = 100
"""Maximum nesting to read; a manifest needs 6."""

Data: TypeAlias = "None | bool | int | float | str | list[Data] | dict[Data, Data]"


class YamlSyntaxError(ValueError):
    """The text is not YAML that opschema can read; ``span`` is the place."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


class Node(msgspec.Struct, array_like=True, gc=False):
    """One node.

    ``start`` and ``end`` bound what is written: for a block collection up to the end of its last value,
    without the blank lines and comments behind it; tag and anchor lie inside. ``value`` is a scalar's
    text, or an alias's anchor. ``items`` are a sequence's items, or a mapping's keys and values in turn.
    ``style`` is the quote or block indicator of a scalar (empty for a plain one), ``flow`` or ``block``.
    """

    kind: Literal["scalar", "mapping", "sequence", "alias"]
    start: int
    end: int
    value: str = ""
    style: str = ""
    tag: str = ""
    anchor: str = ""
    items: tuple[Node, ...] = ()

    @property
    def span(self) -> Span:
        """Span of the node."""
        return Span(self.start, self.end)

    @property
    def is_mapping(self) -> bool:
        """Whether this is a mapping."""
        return self.kind == "mapping"

    @property
    def is_sequence(self) -> bool:
        """Whether this is a sequence."""
        return self.kind == "sequence"

    def walk(self) -> Iterator[Node]:
        """Yield the node and its descendants; aliases are not followed."""
        yield self
        for item in self.items:
            yield from item.walk()

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield the keys and values of a mapping in source order; nothing for other kinds."""
        if self.kind == "mapping":
            yield from zip(self.items[::2], self.items[1::2], strict=True)

    def pair(self, key: str) -> tuple[Node, Node] | None:
        """Return the key and value nodes of ``key``; for a repeated key the last one, as readers do."""
        if self.kind != "mapping":
            return None
        items = self.items
        for at in reversed(_large_index(items).get(key, ())) if len(items) > _LARGE else range(len(items) - 2, -1, -2):
            node = items[at]
            if node.value == key and node.kind == "scalar":
                return node, items[at + 1]
        return None

    def values_of(self, key: str) -> list[Node]:
        """Return the values of ``key`` in source order; a repeated key has several."""
        if self.kind != "mapping":
            return []
        items = self.items
        places = _large_index(items).get(key, ()) if len(items) > _LARGE else range(0, len(items), 2)
        return [items[at + 1] for at in places if items[at].value == key and items[at].kind == "scalar"]

    def get(self, *path: str | int) -> Node | None:
        """Return the node at ``path`` of keys and indexes, or None. Aliases are not followed."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            if isinstance(step, str):
                pair = node.pair(step)
                node = pair[1] if pair else None
            elif node.kind == "sequence" and -len(node.items) <= step < len(node.items):
                node = node.items[step]
            else:
                node = None
        return node


_LARGE = 64
"""Number of keys and values of a mapping from which on its keys are looked up in an index."""

_INDEXES: dict[int, tuple[tuple[Node, ...], dict[str, list[int]]]] = {}
"""The indexes of the most recently used large mappings, by the identity of their items."""

_MOST_INDEXES = 256


def _large_index(items: tuple[Node, ...]) -> dict[str, list[int]]:
    """Return the index of each key of a mapping among its items."""
    found = _INDEXES.get(id(items))
    if found is None or found[0] is not items:
        if len(_INDEXES) >= _MOST_INDEXES:
            _INDEXES.clear()
        places: dict[str, list[int]] = {}
        for at in range(0, len(items), 2):
            places.setdefault(items[at].value, []).append(at)
        found = _INDEXES[id(items)] = items, places
    return found[1]


class Document(msgspec.Struct, array_like=True, gc=False):
    """One YAML file: its root node (None if empty) and its anchors."""

    root: Node | None
    anchors: dict[str, Node]

    def follow(self, node: Node) -> Node:
        """Return the node itself, or the target of an alias."""
        return self.anchors[node.value] if node.kind == "alias" else node

    def merged(self, node: Node) -> Node:
        """Return a mapping with the pairs from its merge keys (``<<``), as PyYAML reads them. They keep the places where they
        are written.
        """
        if not any(map(_is_merge, node.items[::2])):
            return node
        pairs: list[tuple[Node, Node]] = []
        known: set[str] = set()
        for source in self.merging(node):
            new = [pair for pair in source.pairs() if not _is_merge(pair[0]) and pair[0].value not in known]
            known.update(key.value for key, _ in new)
            pairs += new
        items = tuple(item for pair in pairs for item in pair)
        return Node(node.kind, node.start, node.end, node.value, node.style, node.tag, node.anchor, items)

    def merging(self, node: Node) -> Iterator[Node]:
        """Yield a mapping and those merged into it, directly or indirectly, each once; the first value of a key counts."""
        seen: set[int] = set()
        left = [node]
        while left:
            found = self.follow(left.pop())
            if found.is_mapping and id(found) not in seen:
                seen.add(id(found))
                yield found
                left += [value for key, value in found.pairs() if _is_merge(key)]
            elif found.is_sequence and id(found) not in seen:
                seen.add(id(found))
                left += reversed(found.items)

    def data(self, node: Node | None = None) -> Data:
        """Plain data of ``node`` (default: the root), as PyYAML's ``safe_load`` gives it.

        Where mappings that are merged share a key, the first of a list counts, and of several ``<<`` the last, as in PyYAML up to
        6.0.3. In 6.0.4 that depends on whether the texts of the keys are one object of Python's.

        Raises:
            YamlSyntaxError: aliases nest too deeply, or lead into themselves.
        """
        top = node if node is not None else self.root
        return _Constructor(self).build(top) if top is not None else None


def _is_merge(key: Node) -> bool:
    return key.kind == "scalar" and key.value == "<<" and not key.style and not key.tag


class _Constructor:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.open: list[str] = []
        self.depth = 0

    def build(self, node: Node) -> Data:
        if node.kind == "scalar":
            return scalar_value(node) if node.style or node.tag else plain_value(node.value)
        self.depth += 1
        if self.depth > 2 * MAX_DEPTH:
            raise YamlSyntaxError(f"its aliases nest deeper than {2 * MAX_DEPTH} levels", node.span)
        found = self._collection(node)
        self.depth -= 1
        return found

    def _collection(self, node: Node) -> Data:
        if node.kind == "sequence":
            return [self.build(item) for item in node.items]
        if node.kind == "alias":
            if node.value in self.open:
                raise YamlSyntaxError(f"the alias `*{node.value}` contains itself", node.span)
            self.open.append(node.value)
            result = self.build(self.document.anchors[node.value])
            self.open.pop()
            return result
        return self._mapping(node)

    def _mapping(self, node: Node) -> dict[Data, Data]:
        merged: dict[Data, Data] = {}
        own: dict[Data, Data] = {}
        for key_node, value_node in zip(node.items[::2], node.items[1::2], strict=True):
            if key_node.value == "<<" and key_node.kind == "scalar" and not key_node.style:
                here: dict[Data, Data] = {}
                sources = self.build(value_node)
                for source in sources if isinstance(sources, list) else [sources]:
                    if isinstance(source, dict):
                        here = {**source, **here}
                merged.update(here)
                continue
            key = self.build(key_node)
            # A collection can be no key of a mapping; like null it is not text.
            own[None if isinstance(key, list | dict) else key] = self.build(value_node)
        return {**merged, **own} if merged else own


def scalar_value(node: Node) -> bool | int | float | str | None:
    """Return the value of a scalar under YAML 1.1; dates and tagged scalars stay text."""
    if node.tag and node.tag != "!":
        return _tagged(node)
    return node.value if node.style else plain_value(node.value)


def _tagged(node: Node) -> bool | int | float | str | None:
    value = plain_value(node.value)
    if node.tag == "tag:yaml.org,2002:float" and type(value) is int:
        return as_float(value)
    if node.tag in {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool"}:
        return value
    return None if node.tag == "tag:yaml.org,2002:null" else node.value


class YamlFile:
    """A parsed YAML file: its source, its tree, and its data."""

    def __init__(self, source: Source, document: Document) -> None:
        self.source = source
        self.document = document

    @property
    def path(self) -> str:
        """The file's path, relative to the workspace."""
        return self.source.path

    @property
    def root(self) -> Node | None:
        """The root node; None for an empty file."""
        return self.document.root

    @cached_property
    def data(self) -> Data:
        """The file's data, as its readers load it."""
        return self.document.data()

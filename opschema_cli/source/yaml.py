"""YAML as a tree that knows its places.

Composed from libyaml's events (ruamel.yaml's C parser), never constructed into objects: unsafe tags
stay text. Scalars are read as YAML 1.1, the way PyYAML's ``safe_load`` reads them. The editor lives in
:mod:`opschema_cli.source.yaml_edit`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import msgspec

from opschema_cli.source.text import Source, Span

MAX_DEPTH = 100
"""Deepest nesting that is read; a manifest needs 6."""

MAX_NODES = 1_000_000
"""Most nodes that are built from one file, and most values that its aliases may expand to."""

MAX_DIRECTIVES = 100
"""Most lines of ``%`` before a document: libyaml compares each with all others."""

MAX_DIGITS = 3_500
"""Most digits of a number; a longer one stays text. Even in base 16 so many are a number that Python writes in decimal."""

MAX_SLOW_CHARACTERS = 250_000
"""Longest text that is tried again with the slow parser."""

Data: TypeAlias = "None | bool | int | float | str | list[Data] | dict[Data, Data]"


class YamlSyntaxError(ValueError):
    """The text is not YAML that opschema reads; ``span`` is the place."""

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
        """Where the node is written."""
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
        """The node and all below it; aliases are not followed."""
        yield self
        for item in self.items:
            yield from item.walk()

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Keys and values of a mapping, in the order of the text; nothing for other kinds."""
        if self.kind == "mapping":
            yield from zip(self.items[::2], self.items[1::2], strict=True)

    def pair(self, key: str) -> tuple[Node, Node] | None:
        """The key and value nodes of ``key``; of a repeated key the last, as the reader takes it."""
        if self.kind != "mapping":
            return None
        items = self.items
        for at in reversed(_large_index(items).get(key, ())) if len(items) > _LARGE else range(len(items) - 2, -1, -2):
            node = items[at]
            if node.value == key and node.kind == "scalar":
                return node, items[at + 1]
        return None

    def values_of(self, key: str) -> list[Node]:
        """The values of ``key``, in the order of the text; more than one of a repeated key."""
        if self.kind != "mapping":
            return []
        items = self.items
        places = _large_index(items).get(key, ()) if len(items) > _LARGE else range(0, len(items), 2)
        return [items[at + 1] for at in places if items[at].value == key and items[at].kind == "scalar"]

    def get(self, *path: str | int) -> Node | None:
        """The node at ``path`` of keys and indexes, or None. Aliases are not followed."""
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
"""Items of a mapping, keys and values, from which on its keys are looked up in an index."""

_INDEXES: dict[int, tuple[tuple[Node, ...], dict[str, list[int]]]] = {}
"""The indexes of the large mappings that were looked at last, by the identity of their items."""

_MOST_INDEXES = 256


def _large_index(items: tuple[Node, ...]) -> dict[str, list[int]]:
    """Where each key of a mapping stands among its items."""
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
    """One YAML file: its root node (None when empty) and its anchors."""

    root: Node | None
    anchors: dict[str, Node]

    def follow(self, node: Node) -> Node:
        """The node itself, or the one its alias points to."""
        return self.anchors[node.value] if node.kind == "alias" else node

    def data(self, node: Node | None = None) -> Data:
        """Plain data of ``node`` (default: the root), as PyYAML's ``safe_load`` gives it.

        Raises:
            YamlSyntaxError: aliases nest too deeply, or lead into themselves.
        """
        top = node if node is not None else self.root
        return _Constructor(self).build(top) if top is not None else None


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
            # A collection can be no key of a mapping; like null it is no text.
            own[None if isinstance(key, list | dict) else key] = self.build(value_node)
        return {**merged, **own} if merged else own


# The implicit resolvers of PyYAML 6.0.3, resolver.py; a test compares the results.
_BOOL = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_BOOL_SPELLING = re.compile(r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", re.ASCII)
_NULL = {"", "~", "null", "Null", "NULL"}
_INT = re.compile(r"[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    re.ASCII,
)
TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?"
    r"(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?",
    re.ASCII,
)


def scalar_value(node: Node) -> bool | int | float | str | None:
    """The value of a scalar under YAML 1.1; dates and tagged scalars stay text."""
    if node.tag and node.tag != "!":
        return _tagged(node)
    return node.value if node.style else plain_value(node.value)


def _tagged(node: Node) -> bool | int | float | str | None:
    value = plain_value(node.value)
    if node.tag == "tag:yaml.org,2002:float" and type(value) is int:
        return _as_float(value)
    if node.tag in {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool"}:
        return value
    return None if node.tag == "tag:yaml.org,2002:null" else node.value


@lru_cache(maxsize=65_536)
def plain_value(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar's text under YAML 1.1."""
    if text in _NULL:
        return None
    if _BOOL_SPELLING.fullmatch(text):
        return _BOOL[text.lower()]
    if _INT.fullmatch(text):
        try:
            return _integer(text.replace("_", ""))
        except ValueError:
            return text
    if _FLOAT.fullmatch(text):
        return _float(text.replace("_", "").lower())
    return text


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    if len(digits) > MAX_DIGITS:
        raise ValueError(text)
    if ":" in digits:
        value = 0
        for part in digits.split(":"):
            value = value * 60 + int(part)
        return sign * value
    if digits.startswith("0b"):
        return sign * int(digits[2:], 2)
    if digits.startswith("0x"):
        return sign * int(digits[2:], 16)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _as_float(value: int) -> float:
    """The float that is closest to an integer; infinite for one that is larger than all of them."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def _float(text: str) -> float:
    sign, digits = (-1.0, text[1:]) if text[0] == "-" else (1.0, text.lstrip("+"))
    if digits in {".inf", ".nan"}:
        return sign * float(digits[1:])
    return sign * (_sexagesimal(digits) if ":" in digits else float(digits))


def _sexagesimal(digits: str) -> float:
    value = 0.0
    for part in digits.split(":"):
        value = value * 60 + float(part)
    return value


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


_HEAD = re.compile(r"(?:[ \t]*(?:[%#][^\r\n]*)?[\r\n])*")
_DIRECTIVE = re.compile(r"(?:\A|(?<=[\r\n]))%")


def compose(text: str) -> Document:
    """The tree of the first document in ``text``.

    Raises:
        YamlSyntaxError: the text is not YAML, nests deeper than :data:`MAX_DEPTH`, holds more than one
            document, more than :data:`MAX_NODES` nodes or values of aliases, an alias without anchor, or an anchor twice.
    """
    from _ruamel_yaml import CParser
    from ruamel.yaml.error import YAMLError

    head = _HEAD.match(text)
    if head is not None and len(_DIRECTIVE.findall(head.group())) > MAX_DIRECTIVES:
        raise YamlSyntaxError(f"it begins with more than {MAX_DIRECTIVES} directives", Span(0, 0))
    try:
        return _Composer(CParser(text).get_event, text).compose()
    except YAMLError as error:
        # The C parser is an old libyaml, which refuses `{CPU: at::add}` and `[x:y]`; readers do not.
        return _compose_slowly(text, _syntax_error(error, text))


def _compose_slowly(text: str, refused: YamlSyntaxError) -> Document:
    """The tree by ruamel's own parser, some 20 times slower; ``refused`` if that refuses the text as well."""
    if len(text) > MAX_SLOW_CHARACTERS or "':'" not in refused.reason:
        raise refused
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    events = YAML(typ="safe", pure=True).parse(text)
    try:
        document = _Composer(events.__next__, text).compose()
    except (YAMLError, ValueError, OverflowError):  # the latter of an escape that is no character
        raise refused from None
    # To YAML 1.2 `{a:}` has the key `a:`, to its readers here the key `a`: better no answer than another one.
    if document.root is not None and any(map(_read_otherwise, document.root.walk())):
        raise refused
    return document


def _read_otherwise(node: Node) -> bool:
    half = any("\ud800" <= character <= "\udfff" for character in node.value) if node.style == '"' else False
    return half or (node.kind == "scalar" and not node.style and node.value.endswith(":"))


def _syntax_error(error: Exception, text: str) -> YamlSyntaxError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        at = min(mark.index, len(text))
        if text[at : at + 1] == "\t":
            return YamlSyntaxError("a tab stands where only spaces may; write spaces", Span(at, at + 1))
        words = (getattr(error, "problem", None), getattr(error, "context", None))
        return YamlSyntaxError(" ".join(filter(None, words)), Span(at, at))
    read = text.encode(errors="replace")[: getattr(error, "position", 0) or 0]  # the reader counts bytes
    at = len(read.decode(errors="ignore"))
    return YamlSyntaxError(str(error).partition("\n")[0], Span(at, at))


class _Composer:
    """Builds the tree with a stack of its own: libyaml's composer recurses until the process dies."""

    def __init__(self, step: Callable[[], Any], text: str) -> None:
        self.step = step
        self.text = text
        self.anchors: dict[str, Node] = {}
        self.stack: list[tuple[Node, list[Node]]] = []
        self.words: dict[str, str] = {}
        self.values = [0]  # so far in the document and in each open collection, aliases followed
        self.sizes: dict[str, int] = {}
        self.root: Node | None = None
        self.documents = 0
        self.nodes = 0

    def compose(self) -> Document:
        from ruamel.yaml import events as e

        handlers: dict[type, Callable[[Any], None]] = {
            e.ScalarEvent: self._scalar,
            e.MappingStartEvent: lambda event: self._open("mapping", event),
            e.SequenceStartEvent: lambda event: self._open("sequence", event),
            e.MappingEndEvent: self._close,
            e.SequenceEndEvent: self._close,
            e.AliasEvent: self._alias,
            e.DocumentStartEvent: self._document,
        }
        while type(event := self.step()) is not e.StreamEndEvent:
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)
        return Document(self.root, self.anchors)

    def _scalar(self, event: Any) -> None:
        start, end, style = event.start_mark.index, event.end_mark.index, event.style or ""
        if style in {"|", ">"}:
            end = self._block_scalar_end(start, end, event.value)
        value = self.words.setdefault(event.value, event.value)  # the same few words fill every entry
        self._add(Node("scalar", start, end, value, style, event.tag or ""), event)

    def _open(self, kind: Literal["mapping", "sequence"], event: Any) -> None:
        style = "flow" if event.flow_style else "block"
        node = Node(kind, event.start_mark.index, event.end_mark.index, "", style, event.tag or "")
        self._add(node, event)
        self.stack.append((node, []))
        self.values.append(0)
        if len(self.stack) > MAX_DEPTH:
            raise YamlSyntaxError(f"it nests deeper than {MAX_DEPTH} levels", node.span)

    def _close(self, event: Any) -> None:
        node, items = self.stack.pop()
        node.items = tuple(items)
        node.end = self._collection_end(node, event)
        size = self.values.pop()
        self.values[-1] += size
        self.sizes[node.anchor] = size + 1

    def _alias(self, event: Any) -> None:
        span = Span(event.start_mark.index, event.end_mark.index)
        if event.anchor not in self.anchors:
            raise YamlSyntaxError(f"the alias `*{event.anchor}` has no anchor above it", span)
        self._add(Node("alias", *span, event.anchor), None)
        self.values[-1] += self.sizes.get(event.anchor, 0)
        if sum(self.values) > MAX_NODES:
            raise YamlSyntaxError(f"its aliases expand to more than {MAX_NODES:,} values", span)

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            span = Span(event.start_mark.index, event.end_mark.index)
            raise YamlSyntaxError("a second document starts here; a schema file holds one", span)

    def _add(self, node: Node, event: object) -> None:
        self.nodes += 1
        self.values[-1] += 1
        if self.nodes > MAX_NODES:
            raise YamlSyntaxError(f"it holds more than {MAX_NODES:,} nodes", node.span)
        anchor = getattr(event, "anchor", None)
        if anchor:
            if anchor in self.anchors:
                raise YamlSyntaxError(f"the anchor `&{anchor}` is set twice", node.span)
            node.anchor = anchor
            self.anchors[anchor] = node
        if self.stack:
            self.stack[-1][1].append(node)
        elif self.root is None:
            self.root = node

    def _collection_end(self, node: Node, event: object) -> int:
        start, end = event.start_mark.index, event.end_mark.index  # type: ignore[attr-defined]
        if node.style == "flow" and start < end:  # closed by a bracket; else the mark is the next token's
            return int(end)
        return max(node.start, node.items[-1].end) if node.items else node.start

    def _block_scalar_end(self, start: int, end: int, value: str) -> int:
        """The end of a block scalar's text, whose end mark lies behind its last line and all blank ones."""
        written = self.text[start:end]
        header = written.partition("\n")[0].partition("#")[0]
        if "+" in header:  # the blank lines are text
            return end - len(written) + len(re.sub(r"(?:\r\n|\r|\n)\Z", "", written))
        kept = "\r\n" if value.rstrip("\n").endswith((" ", "\t")) else " \t\r\n"
        return start + len(written.rstrip(kept))


def parse(source: Source) -> YamlFile:
    """Parse one YAML file.

    Raises:
        YamlSyntaxError: see :func:`compose`.
    """
    return YamlFile(source, compose(source.text))

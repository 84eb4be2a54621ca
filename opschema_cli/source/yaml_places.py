"""Places of the parts of a YAML file: lines, nodes, entries, and the comments and blank lines around them.

An *entry* is a key with its value, or an item with its dash; it is named by its collection and its number.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter

import msgspec

from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile

_WORD = re.compile(r"[^ \t\r\n]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_COLON = re.compile(r"[ \t]*:")
_COMMA = re.compile(r"[ \t]*(,?)[ \t]*(?:#.*)?")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*")
_FOR_THE_FILE = re.compile(r"SPDX-|[Cc]opyright|yaml-language-server:|ignore-file")


class YamlEditError(ValueError):
    """An edit that cannot be made without losing or changing something else; ``span`` is the place."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


# Lines.


def line_of(file: YamlFile, offset: int) -> int:
    """Return the number of the line that contains ``offset``."""
    return file.source.position(offset).line


def line_start(file: YamlFile, offset: int) -> int:
    """Return the start of the line of ``offset``."""
    return file.source.line_span(line_of(file, offset)).start


def line_end(file: YamlFile, offset: int) -> int:
    """Return the end of the line of ``offset``, before its line end."""
    return file.source.line_span(line_of(file, offset)).end


def column(file: YamlFile, offset: int) -> int:
    """Return the number of characters before ``offset`` in its line."""
    return offset - line_start(file, offset)


def begins_line(file: YamlFile, offset: int) -> bool:
    """Whether only white space precedes ``offset`` in its line."""
    return is_blank(file.source.text[line_start(file, offset) : offset])


def is_blank(text: str) -> bool:
    """Whether YAML ignores ``text``."""
    return not text.strip(" \t\r\n")


# Nodes and entries.


class Place(msgspec.Struct, frozen=True):
    """The position of a node: its parent (None for the root), its entry's number, and whether it is a key."""

    parent: Node | None
    number: int
    is_key: bool


def place_of(file: YamlFile, node: Node) -> Place:
    """Return the place of ``node`` in the tree, searched from the root.

    Raises:
        YamlEditError: the node is not one of this file's.
    """
    here, place = file.root, Place(None, 0, False)
    while here is not node:
        at = _step_down(here, node) if here else None
        if here is None or at is None:
            raise YamlEditError("it is not a node of this file", node.span)
        number, odd = divmod(at, 2) if here.is_mapping else (at, 1)
        here, place = here.items[at], Place(here, number, not odd)
    return place


def _step_down(here: Node, node: Node) -> int | None:
    at = bisect_right(here.items, node.start, key=attrgetter("start"))
    while at:
        at -= 1
        child = here.items[at]
        if child is node or (child.items and child.end >= node.end):
            return at
        if child.start < node.start:
            break
    return None


def values(node: Node) -> tuple[Node, ...]:
    """A mapping's values or a sequence's items."""
    return node.items[1::2] if node.is_mapping else node.items


def value_at(node: Node, number: int) -> Node:
    """The value of one entry."""
    return node.items[2 * number + 1] if node.is_mapping else node.items[number]


def count(node: Node) -> int:
    """The number of entries of a collection."""
    return len(node.items) // 2 if node.is_mapping else len(node.items)


def entry(file: YamlFile, node: Node, number: int) -> Span:
    """Return the span of an entry, from its key or dash to the end of its value.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
    """
    value = value_at(node, number)
    if node.is_mapping:
        colon = after_colon(file, node, number)
        return Span(node.items[2 * number].start, value.end if value.end > value.start else colon)
    if node.style == "flow":
        return value.span
    dash = dash_of(file, node, number)
    return Span(dash, max(value.end, dash + 1))


def dash_of(file: YamlFile, node: Node, number: int) -> int:
    """Return the place of the dash of a block sequence's item."""
    return after_space(file, node.items[number - 1].end if number else after_properties(file, node)[1])


def after_colon(file: YamlFile, node: Node, number: int) -> int:
    """Return the end of the colon of a mapping's entry; the end of the key if there is no colon, as in ``{a}``.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
    """
    key, value = node.items[2 * number : 2 * number + 2]
    before = file.source.text[line_start(file, key.start) : key.start].rstrip(" \t")
    colon = _COLON.match(file.source.text, key.end)
    if before.endswith("?") or (not colon and (node.style == "block" or value.end > value.start)):
        raise YamlEditError("its key is written apart from its colon (`? key`)", key.span)
    return colon.end() if colon else key.end


def after_properties(file: YamlFile, node: Node) -> tuple[int, int]:
    """Return the end of the tag and anchor of ``node``, and the start of its content."""
    end = start = node.start
    for _ in range(bool(node.tag) + bool(node.anchor)):
        word = _WORD.match(file.source.text, start, node.end)
        end = word.end() if word else start
        start = min(after_space(file, end), node.end)
    return end, start


def after_space(file: YamlFile, offset: int) -> int:
    """Return the first character from ``offset`` on that is neither white space nor part of a comment."""
    space = _SPACE.match(file.source.text, offset)
    return space.end() if space else offset


def last_block_scalar(node: Node) -> Node | None:
    """Return the block scalar that ends ``node``, if there is one."""
    while node.items:
        node = node.items[-1]
    return node if node.style in {"|", ">"} else None


def block_header(file: YamlFile, node: Node) -> Span:
    """Return the span of a block scalar's indicators, such as ``|-``."""
    start = after_properties(file, node)[1]
    header = _BLOCK_HEADER.match(file.source.text, start)
    return Span(start, header.end() if header else start)


# What stands around an entry.


def lead(file: YamlFile, start: int, floor: int) -> int:
    """Return the start of the line of ``start``, or of the first of the comment lines above that belong to it.

    Those are as far indented, with no blank line between, and behind ``floor``. A comment that speaks for
    the entire file (a licence, an editor's modeline) belongs to nothing.
    """
    source, line, indent = file.source, line_of(file, start), column(file, start)
    while line > 1 and source.line_span(line - 1).start >= floor:
        text = source.line_text(line - 1)
        if _comment_column(text) != indent or _FOR_THE_FILE.search(text):
            break
        line -= 1
    return source.line_span(line).start


def tail(file: YamlFile, end: int, indent: int) -> int:
    """Return the end of the line of ``end``, or of the last comment line below with a deeper indentation."""
    source = file.source
    last = line = line_of(file, end)
    while line < source.line_count:
        line += 1
        text = source.line_text(line)
        if _comment_column(text) > indent:
            last = line
        elif not is_blank(text):
            break
    return source.line_span(last).end


def _comment_column(line: str) -> int:
    text = line.lstrip(" \t")
    return len(line) - len(text) if text.startswith("#") else -1


def blank_lines_above(file: YamlFile, start: int, floor: int) -> int:
    """Return the number of blank lines directly above the line of ``start``, after ``floor``."""
    source, line = file.source, line_of(file, start)
    above = line - 1
    while above and source.line_span(above).start > floor and is_blank(source.line_text(above)):
        above -= 1
    return line - 1 - above


def own_lines(file: YamlFile, span: Span) -> re.Match[str] | None:
    """Whether a flow entry has its lines to itself; group 1 is the comma after it, if any."""
    rest = _COMMA.fullmatch(file.source.text, span.end, line_end(file, span.end))
    return rest if begins_line(file, span.start) else None


# What is asked again and again of one file; the last few files are remembered.


def walk(root: Node | None) -> Iterator[Node]:
    """Return ``root`` and all nested nodes in source order."""
    stack = [root] if root else []
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.items))


@lru_cache(maxsize=8)
def aliases(file: YamlFile) -> list[tuple[Node, list[int]]]:
    """Return the anchored nodes that aliases point to, and the places of these aliases."""
    anchors, found = file.document.anchors, dict[str, list[int]]()
    for node in walk(file.root) if anchors else ():
        if node.kind == "alias":
            found.setdefault(node.value, []).append(node.start)
    return [(anchors[name], starts) for name, starts in found.items()]


@lru_cache(maxsize=8)
def has_odd_breaks(file: YamlFile) -> bool:
    """Whether the file contains characters that only break lines in YAML: NEL, LS, PS."""
    return not file.source.text.isascii() and any(char in file.source.text for char in "\x85\u2028\u2029")


@lru_cache(maxsize=8)
def _key_index(file: YamlFile) -> dict[int, dict[str, list[int]]]:
    return {}


def entries_of(file: YamlFile, mapping: Node, key: str) -> list[int]:
    """Return the numbers of the entries with ``key``, by its text; there are several if it is repeated."""
    index = _key_index(file)
    if id(mapping) not in index:
        known = index[id(mapping)] = dict[str, list[int]]()
        for number, (node, _) in enumerate(mapping.pairs()):
            if node.kind == "scalar":
                known.setdefault(node.value, []).append(number)
    return index[id(mapping)].get(key, [])

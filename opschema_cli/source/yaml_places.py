"""Where the parts of a YAML file lie: entries, comments, blank lines, and the hole a value leaves.

Everything an edit must know beyond the tree of :mod:`opschema_cli.source.yaml`. An *entry* is a key with
its value, or an item with its dash; it is named by its collection and its number.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_render import Layout

_WORD = re.compile(r"\S+")
_SPACE = re.compile(r"(?:\s|#[^\r\n]*)*")
_COLON = re.compile(r"[ \t]*:")
_REST_OF_LINE = re.compile(r"[ \t]*(,?)[ \t]*(?:#.*)?")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*")
_FOR_THE_FILE = re.compile(r"SPDX-|[Cc]opyright|yaml-language-server:|ignore-file")


class YamlEditError(ValueError):
    """An edit that cannot be done without losing or changing something else; ``span`` is the place."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


# Lines.


def line_of(file: YamlFile, offset: int) -> int:
    """The number of the line that holds ``offset``."""
    return file.source.position(offset).line


def line_start(file: YamlFile, offset: int) -> int:
    """Where the line of ``offset`` begins."""
    return file.source.line_span(line_of(file, offset)).start


def line_end(file: YamlFile, offset: int) -> int:
    """Where the line of ``offset`` ends, before its line end."""
    return file.source.line_span(line_of(file, offset)).end


def column(file: YamlFile, offset: int) -> int:
    """How many characters stand before ``offset`` in its line."""
    return offset - line_start(file, offset)


def begins_line(file: YamlFile, offset: int) -> bool:
    """Whether only blanks stand before ``offset`` in its line."""
    return not file.source.text[line_start(file, offset) : offset].strip(" \t")


def after_space(file: YamlFile, offset: int) -> int:
    """The first character from ``offset`` on that is neither blank nor comment."""
    space = _SPACE.match(file.source.text, offset)
    return space.end() if space else offset


# Nodes.


class Place(NamedTuple):
    """Where a node hangs: its parent (None for the root), its entry's number, and whether it is a key."""

    parent: Node | None
    entry: int
    is_key: bool


def place_of(file: YamlFile, node: Node) -> Place:
    """The place of ``node`` in the tree, found from the root down.

    Raises:
        YamlEditError: the node is not one of this file's.
    """
    here, place = file.root, Place(None, 0, False)
    while here is not node:
        at = _step_down(here, node) if here else None
        if here is None or at is None:
            raise YamlEditError("it is not a node of this file", node.span)
        entry, odd = divmod(at, 2) if here.is_mapping else (at, 1)
        here, place = here.items[at], Place(here, entry, not odd)
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


def count(node: Node) -> int:
    """How many entries a collection has."""
    return len(node.items) // 2 if node.is_mapping else len(node.items)


def after_properties(file: YamlFile, node: Node) -> tuple[int, int]:
    """Where the tag and anchor of ``node`` end, and where its content begins."""
    end = start = node.start
    for _ in range(bool(node.tag) + bool(node.anchor)):
        word = _WORD.match(file.source.text, start, node.end)
        end = word.end() if word else start
        space = _SPACE.match(file.source.text, end, node.end)
        start = space.end() if space else end
    return end, start


def entry(file: YamlFile, node: Node, number: int) -> Span:
    """What is written of an entry, from its key or dash to the end of its value.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
    """
    if node.is_sequence:
        item = node.items[number]
        if node.style == "flow":
            return item.span
        dash = dash_of(file, node, number)
        return Span(dash, max(item.end, dash + 1))
    key, value = node.items[2 * number : 2 * number + 2]
    colon = after_colon(file, node, number)
    return Span(key.start, value.end if value.end > value.start else colon)


def dash_of(file: YamlFile, node: Node, number: int) -> int:
    """Where the dash of a block sequence's item stands."""
    behind = node.items[number - 1].end if number else after_properties(file, node)[1]
    return after_space(file, behind)


def after_colon(file: YamlFile, node: Node, number: int) -> int:
    """Where the colon of a mapping's entry ends; the end of the key where there is none, as in ``{a}``.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
    """
    key, value = node.items[2 * number : 2 * number + 2]
    before = file.source.text[line_start(file, key.start) : key.start].rstrip()
    colon = _COLON.match(file.source.text, key.end)
    if before.endswith("?") or (not colon and (node.style == "block" or value.end > value.start)):
        raise YamlEditError("its key and colon are written on their own (`? key`)", key.span)
    return colon.end() if colon else key.end


def last_block_scalar(node: Node) -> Node | None:
    """The block scalar that ends ``node``, if one does."""
    while node.items:
        node = node.items[-1]
    return node if node.style in {"|", ">"} else None


def block_header(file: YamlFile, node: Node) -> Span:
    """The indicators of a block scalar, such as ``|-``."""
    header = _BLOCK_HEADER.match(file.source.text, after_properties(file, node)[1])
    assert header, "a block scalar has a header"
    return Span(*header.span())


# What stands around an entry.


def lead(file: YamlFile, start: int, floor: int) -> int:
    """Where the line of ``start`` begins, or the first of the comment lines above that belong to it.

    Those are as far indented, with no blank line between, and behind ``floor``. A comment that speaks for
    the whole file (a licence, an editor's modeline) belongs to nothing.
    """
    source, line, indent = file.source, line_of(file, start), column(file, start)
    while line > 1 and source.line_span(line - 1).start >= floor:
        text = source.line_text(line - 1)
        if _comment_column(text) != indent or _FOR_THE_FILE.search(text):
            break
        line -= 1
    return source.line_span(line).start


def tail(file: YamlFile, end: int, indent: int) -> int:
    """The end of the line of ``end``, or of the last comment line below that is further indented."""
    source = file.source
    last = line = line_of(file, end)
    while line < source.line_count:
        line += 1
        text = source.line_text(line)
        if _comment_column(text) > indent:
            last = line
        elif text.strip():
            break
    return source.line_span(last).end


def _comment_column(line: str) -> int:
    text = line.lstrip(" \t")
    return len(line) - len(text) if text.startswith("#") else -1


def blank_lines_above(file: YamlFile, start: int, floor: int) -> int:
    """How many blank lines stand directly above the line of ``start``, behind ``floor``."""
    source, line = file.source, line_of(file, start)
    above = line - 1
    while above and source.line_span(above).start > floor and not source.line_text(above).strip():
        above -= 1
    return line - 1 - above


def own_lines(file: YamlFile, span: Span) -> re.Match[str] | None:
    """Whether a flow entry has its lines to itself; group 1 is the comma behind it, if any."""
    rest = _REST_OF_LINE.fullmatch(file.source.text, span.end, line_end(file, span.end))
    return rest if begins_line(file, span.start) else None


class Hole(NamedTuple):
    """What a new value of a node replaces.

    Its first line goes into ``first``, behind ``lead``; its other lines go into ``rest``. A block collection
    may begin in ``first`` if ``compact``, else its lines stand below ``opener``, indented from ``column``.
    """

    opener: int
    lead: str
    first: Span
    rest: Span
    column: int
    compact: bool


def hole(file: YamlFile, node: Node, place: Place) -> Hole:
    """The hole that ``node`` leaves when its value goes.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
    """
    opener, sep, indent = _opener(file, node, place)
    end, start = after_properties(file, node)
    if end > node.start:
        opener, sep = end, " "
    first, rest = _spans(file, node, opener, start, indent)
    return Hole(
        opener=opener,
        lead="" if first.start < first.end else sep,
        first=first,
        rest=rest,
        column=indent,
        compact=end == node.start and _may_begin_at(file, first.start, place.parent, opener, indent),
    )


def _opener(file: YamlFile, node: Node, place: Place) -> tuple[int, str, int]:
    parent = place.parent
    if parent is None:
        return node.start, "" if begins_line(file, node.start) else " ", 0
    if parent.is_mapping:
        key = parent.items[2 * place.entry]
        colon = after_colon(file, parent, place.entry)
        return colon, " " if colon > key.end else ": ", column(file, key.start)
    if parent.style == "flow":
        return node.start, "", 0
    dash = dash_of(file, parent, place.entry)
    return dash + 1, " ", column(file, dash)


def _spans(file: YamlFile, node: Node, opener: int, start: int, indent: int) -> tuple[Span, Span]:
    if node.style == "block":
        end = tail(file, node.end, indent)
        if line_of(file, opener) == line_of(file, start):
            return Span(start, end), Span(end, end)
        return Span(opener, opener), Span(line_end(file, opener), end)
    if node.style in {"|", ">"}:
        header = block_header(file, node)
        return header, Span(line_end(file, header.end), node.end)
    first = Span(start, node.end) if start < node.end else Span(opener, opener)
    end = line_end(file, first.end)
    return first, Span(end, end)


def _may_begin_at(file: YamlFile, start: int, parent: Node | None, opener: int, indent: int) -> bool:
    """Whether a block collection's first key or dash may stand at ``start``."""
    if parent and parent.is_sequence and line_of(file, start) == line_of(file, opener):
        return True
    return begins_line(file, start) and (parent is None or column(file, start) > indent)


# What is worth knowing once per file; the last few files are remembered.


class Shared(NamedTuple):
    """An anchored node and where its aliases stand."""

    node: Node
    aliases: list[int]


@lru_cache(maxsize=8)
def shared_nodes(file: YamlFile) -> list[Shared]:
    """The anchored nodes that aliases point to."""
    anchors, aliases = file.document.anchors, dict[str, list[int]]()
    for node in _walk(file.root) if anchors else ():
        if node.kind == "alias":
            aliases.setdefault(node.value, []).append(node.start)
    return [Shared(anchors[name], starts) for name, starts in aliases.items()]


@lru_cache(maxsize=8)
def _key_index(file: YamlFile) -> dict[int, dict[str, list[int]]]:
    return {}


def entries_of(file: YamlFile, mapping: Node, key: str) -> list[int]:
    """The numbers of the entries of ``key``, by its text; more than one where it is repeated."""
    index = _key_index(file)
    if id(mapping) not in index:
        known = index[id(mapping)] = dict[str, list[int]]()
        for number, (node, _) in enumerate(mapping.pairs()):
            if node.kind == "scalar":
                known.setdefault(node.value, []).append(number)
    return index[id(mapping)].get(key, [])


@lru_cache(maxsize=8)
def _house_layout(file: YamlFile) -> Layout:
    pairs = (pair for node in _walk(file.root) if node.style == "block" for pair in node.pairs())
    step, offset = _indents(file, pairs)
    step = step or 2
    return Layout(step, step if offset is None else offset)


def _walk(root: Node | None) -> Iterator[Node]:
    stack = [root] if root else []
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.items))


def _indents(file: YamlFile, pairs: Iterable[tuple[Node, Node]]) -> tuple[int | None, int | None]:
    """How far the first block mapping and the first block sequence among ``pairs`` stand from their keys."""
    found: dict[str, int] = {}
    for key, value in pairs:
        if value.style == "block" and value.kind not in found:
            found[value.kind] = column(file, after_properties(file, value)[1]) - column(file, key.start)
            if len(found) == 2:
                break
    return found.get("mapping"), found.get("sequence")


def model(parent: Node, number: int) -> Node:
    """``parent`` with only the entries around ``number``, nearest first: how a new entry should look."""
    near = [n for n in (number, number - 1, number + 1, number - 2) if 0 <= n < count(parent)]
    width = 2 if parent.is_mapping else 1
    items = [node for n in near for node in parent.items[n * width : (n + 1) * width]]
    return Node(parent.kind, parent.start, parent.end, style=parent.style, items=items)


def layout(file: YamlFile, parent: Node | None, number: int) -> Layout:
    """How block collections are indented around an entry, else in the file."""
    house = _house_layout(file)
    if parent is None or parent.style == "flow":
        return house
    if parent.is_sequence:
        return house._replace(dash=_dash_text(file, parent, min(number, count(parent) - 1)))
    step, offset = _indents(file, model(parent, number).pairs())
    return house._replace(step=step or house.step, offset=house.offset if offset is None else offset)


def _dash_text(file: YamlFile, node: Node, number: int) -> str:
    dash = dash_of(file, node, number)
    gap = re.compile(r"- +").match(file.source.text, dash)
    return gap.group() if gap and gap.end() == node.items[number].start else "- "

"""Manifest files taken apart into the text of their entries, and put together again, with every comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_places import aliases, begins_line, column, lead, line_of, tail
from opschema_rules.tileops.model import entries_node


class Unfit(Exception):  # noqa: N818 - an answer, not a fault
    """A file that is not written entry by entry, and the place that shows it."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class Chunk(msgspec.Struct, frozen=True):
    """The text of one entry: blank lines and comments above its key, the entry, and the comments that are further indented."""

    name: str
    text: str
    head: str = ""

    @property
    def body(self) -> str:
        """The text without the blank lines above it."""
        return re.sub(r"\A(?:[ \t]*(?:\r\n|\r|\n))+", "", self.text)


class Layout(msgspec.Struct, frozen=True):
    """The layout of a file's entries: the line above them (``ops:``, or empty), and their column."""

    opening: str = ""
    indent: int = 0


class Parts(msgspec.Struct, frozen=True):
    """A file: the text above its entries, their layout, and their texts. Joined they are the file."""

    head: str
    layout: Layout
    chunks: tuple[Chunk, ...]
    newline: str = "\n"

    @property
    def text(self) -> str:
        """The file."""
        return self.head + self.layout.opening + "".join(chunk.text for chunk in self.chunks)


_MARKER = re.compile(r"(?m)^(?:---|\.\.\.|%)")


def take_apart(file: YamlFile) -> Parts:
    """The parts of a manifest file.

    Raises:
        Unfit: it is not a block mapping whose entries have lines of their own, or has document markers.
    """
    text, owner = file.source.text, entries_node(file)
    marker = _MARKER.search(text)
    if marker is not None:
        raise Unfit(Place(file.path, Span(*marker.span())), "it has document markers")
    if owner is None or owner.style != "block" or not owner.items:
        raise Unfit(Place(file.path, Span(0, 0)), "it is not a block of entries")
    last = _last(owner)
    if last.style in ("|", ">") and not text.endswith(("\n", "\r")) and "-" not in text[last.start :].splitlines()[0]:
        raise Unfit(Place(file.path, last.span), "it ends in a text whose last line has no end, and would get one")
    starts = _starts(file, owner)
    layout = Layout(_opening(file, owner, starts[0]), column(file, owner.items[0].start))
    first = starts[0] - len(layout.opening)
    bounds = [*starts, len(text)]
    names = [key.value for key, _ in owner.pairs()]
    chunks = (Chunk(name, text[bounds[at] : bounds[at + 1]]) for at, name in enumerate(names))
    return Parts(text[:first], layout, tuple(chunks), file.source.newline)


def _last(node: Node) -> Node:
    while node.items and node.kind != "scalar":
        node = node.items[-1]
    return node


def _starts(file: YamlFile, owner: Node) -> list[int]:
    """Return the start of each entry's text: after the previous one, the first with the comments directly above it."""
    found: list[int] = []
    source = file.source
    for number, (key, _) in enumerate(owner.pairs()):
        if not begins_line(file, key.start) or key.kind != "scalar":
            raise Unfit(Place(file.path, key.span), "an entry does not begin on a line of its own")
        if number == 0:
            found.append(_below_opening(file, owner) if owner is not file.root else lead(file, key.start, 0))
        else:
            above = owner.items[2 * number - 1]
            end = tail(file, max(above.end, owner.items[2 * number - 2].end), column(file, key.start))
            found.append(source.line_span(line_of(file, end) + 1).start)
    return found


def _below_opening(file: YamlFile, owner: Node) -> int:
    """The line below ``ops:``."""
    key = next(key for key, value in (file.root.pairs() if file.root is not None else ()) if value is owner)
    if file.root is not None and len(file.root.items) > 2:
        raise Unfit(Place(file.path, key.span), "there are other keys next to it")
    return file.source.line_span(line_of(file, key.end) + 1).start


def _opening(file: YamlFile, owner: Node, start: int) -> str:
    """The line of ``ops:``, with its line end."""
    if owner is file.root or file.root is None:
        return ""
    return file.source.text[file.source.line_span(line_of(file, file.root.items[0].start)).start : start]


def crossing(file: YamlFile, groups: Iterable[Sequence[Span]]) -> Node | None:
    """An anchor that an alias in another group of entries needs."""
    by_group = list(groups)

    def group_of(offset: int) -> int:
        found = (at for at, spans in enumerate(by_group) if any(start <= offset < end for start, end in spans))
        return next(found, -1)

    for anchored, starts in aliases(file):
        if any(group_of(start) != group_of(anchored.start) for start in starts):
            return anchored
    return None


def indented(text: str, before: int, after: int) -> str:
    """Return lines moved from one column to another; blank ones and comments further left keep what they can."""
    if before == after:
        return text
    lines = text.splitlines(keepends=True)
    return "".join(_moved(line, after - before) for line in lines)


def _moved(line: str, by: int) -> str:
    if not line.strip():
        return line
    if by > 0:
        return " " * by + line
    blanks = len(line) - len(line.lstrip(" "))
    return line[min(-by, blanks) :]


def put_together(parts: Parts, layout: Layout, kept: Sequence[Chunk], added: Sequence[tuple[Chunk, Layout]]) -> str:
    """Return a file with the entries that stay, unchanged, followed by entries from other files.

    ``parts`` give the text above the entries and the line end. Each added entry has a blank line above it.
    """
    newline = parts.newline
    text = parts.head + layout.opening
    for chunk in kept:
        above = chunk.body if _ends_blank(text, newline) or not text else chunk.text
        text += indented(above, parts.layout.indent, layout.indent)
    for chunk, origin in added:
        if kept or not (_ends_blank(text, newline) or not text or text == parts.head + layout.opening):
            text = text.rstrip("\r\n") + newline * 2
        text += indented(_closed(chunk.head, newline), 0, layout.indent)
        text += indented(chunk.body, origin.indent, layout.indent).rstrip("\r\n") + newline
    return text


def _closed(text: str, newline: str) -> str:
    return text if not text or text.endswith(("\n", "\r")) else text + newline


def _ends_blank(text: str, newline: str) -> bool:
    return text.endswith(newline * 2)

"""A block list of operators as text: each item with its own lines, and the text between items.

A comment above an item is its own unless it plainly heads several: it stands above the first one, speaks of those "below",
"following" or of a note, is a line of dashes, or has a blank line or an item that is commented out under it. One that names
the operator under it is its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

import msgspec

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.source.yaml_places import after_colon, begins_line, column, entry, has_odd_breaks, line_of, tail
from opschema_rules.aten.migrations.list_order import nearest_order, place_in
from opschema_rules.aten.model import BackendFile

_HEADS_SEVERAL = re.compile(r"\b(?:below|following|these|those|section|notes?:)(?!\w)|[-=*#~]{4}", re.IGNORECASE)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_COMMENTED_OUT = re.compile(r"\s*#\s*-\s*\S")


class ListItem(msgspec.Struct, frozen=True):
    """An operator of a list; ``text`` are its lines, its own comments included, without the list's indentation."""

    name: str
    text: str

    @property
    def has_comment(self) -> bool:
        """Whether it has its own comment above it."""
        return self.text.startswith("#")


class Stretch(msgspec.Struct):
    """Adjacent items; ``head`` are the comments and blank lines above them, which stay, at ``span``."""

    head: str
    span: Span
    items: list[ListItem]

    @property
    def names(self) -> list[str]:
        """The operators."""
        return [item.name for item in self.items]


class ListText(msgspec.Struct):
    """A block list: its stretches, and the blank lines that part any two items of one."""

    file: YamlFile
    colon: int
    span: Span
    indent: str
    separator: str
    stretches: list[Stretch]

    @property
    def names(self) -> list[str]:
        """All of its operators, in order."""
        return [name for stretch in self.stretches for name in stretch.names]

    def edits(self) -> Iterator[Edit]:
        """Yield the edits that write the current list, line by line; an empty one as ``[]``."""
        if not self.names:
            yield Edit(Span(self.colon, self.colon), " []")
        old = _LINE.findall(self.file.source.text[self.span.start : self.span.end])
        new = _LINE.findall("".join(self._rendered()))
        if new and old and not old[-1].endswith(("\n", "\r")):
            new[-1] = new[-1].rstrip("\r\n")
        starts = [*accumulate(map(len, old), initial=self.span.start)]
        for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
            if kind != "equal":
                yield Edit(Span(starts[start], starts[end]), "".join(new[first:last]))

    def _rendered(self) -> Iterator[str]:
        for stretch in self.stretches:
            if stretch.items or stretch.head.strip():
                yield stretch.head
            yield self.separator.join(indented(item.text, self.indent) for item in stretch.items)

    def headed(self, name: str) -> list[Span]:
        """Return the comments at the head of several items, the first of which is the operator."""
        return [item.span for item in self.stretches if item.names[:1] == [name] and "#" in item.head]

    def take(self, name: str) -> list[ListItem]:
        """Take the items of an operator out."""
        found = [item for stretch in self.stretches for item in stretch.items if item.name == name]
        for stretch in self.stretches:
            stretch.items = [item for item in stretch.items if item.name != name]
        return found

    def put(self, item: ListItem) -> None:
        """Add an item where it belongs among those above the first comment that heads others."""
        stretch = next((stretch for stretch in self.stretches if stretch.items), self.stretches[0])
        order = nearest_order([stretch.names for stretch in self.stretches])
        stretch.items.insert(place_in(stretch.names, item.name, order), item)


def read_list(backend: BackendFile, section: str) -> ListText:
    """One of a backend's lists.

    Raises:
        YamlEditError: it is not a plain block list whose items have lines of their own.
    """
    file, root = backend.file, backend.node
    number, node = _entry_of(backend, section)
    _refuse_odd(file, node)
    indent, first_line = column(file, node.start), line_of(file, after_colon(file, root, number)) + 1
    last_line = line_of(file, tail(file, node.end, indent))
    after = file.source.line_span(last_line + 1).start if last_line < file.source.line_count else len(file.source.text)
    found = list(_pieces(backend, section, node, first_line))
    separator = _separator([head for head, _, _ in found[1:]])
    stretches: list[Stretch] = []
    for head, span, item in found:
        if not stretches or head != separator:
            stretches.append(Stretch(head, span, []))
        stretches[-1].items.append(item)
    whole = Span(file.source.line_span(first_line).start, after)
    return ListText(file, after_colon(file, root, number), whole, " " * indent, separator, stretches)


def _entry_of(backend: BackendFile, section: str) -> tuple[int, Node]:
    found = [(at, value) for at, (key, value) in enumerate(backend.node.pairs()) if key.value == section]
    if len(found) != 1:
        raise YamlEditError(f"the key `{section}` is written {len(found)} times", backend.node.span)
    return found[0]


def _refuse_odd(file: YamlFile, node: Node) -> None:
    if has_odd_breaks(file):
        raise YamlEditError("the file holds U+0085, U+2028 or U+2029, which break lines in YAML only", node.span)
    if node.kind != "sequence" or node.style != "block":
        raise YamlEditError("it is not a list with an item on each line", node.span)
    odd = next((part for part in node.walk() if part.anchor or part.kind == "alias"), None)
    if odd is not None or node.tag:
        raise YamlEditError("it holds tags, anchors or aliases", (odd or node).span)


def _separator(between: Sequence[str]) -> str:
    """Return the blank lines between any two adjacent items."""
    return "" if "" in between else min((text for text in between if not text.strip()), key=len, default="")


def _pieces(backend: BackendFile, section: str, node: Node, line: int) -> Iterator[tuple[str, Span, ListItem]]:
    """Yield each item, with the text above it that is not its own, and its place; ``line`` is the first one below the list's
    key.
    """
    file, indent = backend.file, column(backend.file, node.start)
    names = {item.node.start: item.name for item in backend.section(section)}
    for number, item in enumerate(node.items):
        span = entry(file, node, number)
        if not begins_line(file, span.start):
            raise YamlEditError("its first item follows another dash or key on its line", span)
        name, dash = names.get(item.start, ""), line_of(file, span.start)
        above = [_line(file, at) for at in range(line, dash)]
        head = _head_lines(above, indent, name, first=not number)
        place = Span(file.source.line_span(line).start, file.source.line_span(line + head).start)
        line = line_of(file, tail(file, span.end, indent)) + 1
        own = [*above[head:], *(_line(file, at) for at in range(dash, line))]
        yield (
            "".join(above[:head]),
            _comment(file, place),
            ListItem(name, "".join(text.removeprefix(" " * indent) for text in own)),
        )


def _line(file: YamlFile, number: int) -> str:
    """A line with its line end; the last one of a file gets one."""
    source = file.source
    start, end = source.line_span(number)
    if number < source.line_count:
        return source.text[start : source.line_span(number + 1).start]
    return source.text[start:end] + source.newline


def _comment(file: YamlFile, span: Span) -> Span:
    """The part of a stretch of lines that is comments, without white space around."""
    text = file.source.text[span.start : span.end]
    start = span.start + len(text) - len(text.lstrip())
    return Span(start, max(start, span.start + len(text.rstrip())))


def _head_lines(above: list[str], indent: int, name: str, *, first: bool) -> int:
    """The number of lines above an item that are not its own."""
    at = len(above)
    while at and above[at - 1].startswith(" " * indent + "#") and not _COMMENTED_OUT.match(above[at - 1]):
        at -= 1
    comment = "".join(above[at:])
    if _tells_name(comment, name):
        return at
    return len(above) if first or _HEADS_SEVERAL.search(comment) else at


def _tells_name(comment: str, name: str) -> bool:
    """Whether a comment names an operator, in a form that is not a word of plain English."""
    quoted = f"`{name}`" in comment
    return quoted or (
        ("_" in name or "." in name) and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", comment) is not None
    )


def indented(text: str, indent: str) -> str:
    """Lines of an item with the indentation of a list."""
    return "".join(indent + line if line.strip() else line for line in _LINE.findall(text))

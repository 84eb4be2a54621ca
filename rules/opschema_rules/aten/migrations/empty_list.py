"""A list of operators that is empty or not there yet, to be written as a block."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import YamlFile
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.source.yaml_places import after_colon, column, count, entry, line_of, tail
from opschema_rules.aten.migrations.list_order import Order, place_in
from opschema_rules.aten.migrations.list_text import ListItem, indented
from opschema_rules.aten.model import BackendFile

_INDENT = "  "
_ORDER: Order = "ascii"


class EmptyList(msgspec.Struct):
    """``items`` are written at ``at`` below ``key``, which is empty if the file has it; the text at ``value`` is removed."""

    file: YamlFile
    key: str
    at: int
    value: Span
    indent: str
    items: list[ListItem]

    def put(self, item: ListItem) -> None:
        """Add an item at its sorted place."""
        self.items.insert(place_in([known.name for known in self.items], item.name, _ORDER), item)

    def edits(self) -> Iterator[Edit]:
        """Write the list; nothing while it has no items."""
        newline, text = self.file.source.newline, self.file.source.text
        lines = "".join(indented(item.text, self.indent) for item in self.items)
        if not lines:
            return
        lines = f"{self.key}{newline}{lines}" if self.key else lines
        if not text.endswith(("\n", "\r"), 0, self.at):
            lines = newline + lines.removesuffix(newline)
        yield Edit(Span(self.at, self.at), lines)
        if self.value.end > self.value.start:
            yield Edit(self.value, "")


def empty_list(backend: BackendFile, section: str) -> EmptyList:
    """Return the list of a key with an empty value, or of a missing key.

    Raises:
        YamlEditError: the key is written twice, or the file is not a block of keys.
    """
    file, root = backend.file, backend.node
    if root.style == "flow" or root is not file.root:
        raise YamlEditError("the file is not a block of keys", root.span)
    numbers = [number for number, (key, _) in enumerate(root.pairs()) if key.value == section]
    if len(numbers) > 1:
        raise YamlEditError(f"the key `{section}` is written {len(numbers)} times", root.span)
    if not numbers:
        end = tail(file, entry(file, root, count(root) - 1).end, column(file, root.start))
        return EmptyList(file, f"{section}:", _below(file, end), Span(end, end), _indent(backend), [])
    node, colon = root.items[2 * numbers[0] + 1], after_colon(file, root, numbers[0])
    if node.tag or node.anchor or node.kind == "alias":
        raise YamlEditError("it holds tags, anchors or aliases", node.span)
    value = Span(colon, node.end) if node.end > node.start else Span(colon, colon)
    return EmptyList(file, "", _below(file, value.end), value, _indent(backend), [])


def _below(file: YamlFile, offset: int) -> int:
    """The start of the next line, or the end of the last one."""
    line = line_of(file, offset)
    return file.source.line_span(line + 1).start if line < file.source.line_count else len(file.source.text)


def _indent(backend: BackendFile) -> str:
    """The indentation of the items of the file's other lists."""
    found = (value for _, value in backend.node.pairs() if value.is_sequence and value.style == "block")
    return next((" " * column(backend.file, value.start) for value in found), _INDENT)

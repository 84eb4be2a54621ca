"""Replaces a value with a new one."""

from __future__ import annotations

import msgspec

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Data, Node, YamlFile
from opschema_cli.source.yaml_places import (
    Place,
    after_colon,
    after_properties,
    begins_line,
    block_header,
    column,
    dash_of,
    is_blank,
    line_end,
    line_of,
    place_of,
    tail,
    values,
)
from opschema_cli.source.yaml_render import (
    Context,
    block_lines,
    flow_text,
    is_block,
    literal_lines,
    render_scalar,
)
from opschema_cli.source.yaml_style import layout, model


def fill(file: YamlFile, node: Node, value: Data) -> list[Edit]:
    """Put ``value`` in place of ``node``, after its tag and anchor, written like its neighbours.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
        ValueError: the value cannot be written as YAML.
    """
    place = place_of(file, node)
    hole, context, models = hole_of(file, node, place), context_in(place.parent), [node]
    if place.parent:
        models += values(model(place.parent, place.number))
    if isinstance(value, list | dict):
        if context == "block" and is_block(value, models, default=node.style != "flow"):
            return _fill_block(file, place, hole, value, models)
    elif node.kind == "scalar" and node.end > node.start:
        literal = _literal(file, node, hole, value) if isinstance(value, str) else []
        return splice(file, hole, literal or [render_scalar(value, context, node.style)])
    return splice(file, hole, [flow_text(value, models, context)])


def context_in(parent: Node | None) -> Context:
    """Return the style of the entries of ``parent``."""
    return "flow" if parent and parent.style == "flow" else "block"


class Hole(msgspec.Struct, frozen=True):
    """The spans that a new value replaces.

    Its first line goes into ``first``, behind ``lead``; its other lines go into ``rest``. A block collection
    may begin in ``first`` if ``compact``, else its lines stand below ``opener``, indented from ``column``.
    """

    opener: int
    lead: str
    first: Span
    rest: Span
    column: int
    compact: bool


def hole_of(file: YamlFile, node: Node, place: Place) -> Hole:
    """Return the hole that remains when the value of ``node`` is removed.

    Raises:
        YamlEditError: its key is an explicit one (``? key``).
    """
    opener, lead, indent = _opener(file, node, place)
    end, start = after_properties(file, node)
    if end > node.start:
        opener, lead = end, " "
    first, rest = _spans(file, node, opener, start, indent)
    on_dash = (
        place.parent is not None and place.parent.is_sequence and line_of(file, opener) == line_of(file, first.start)
    )
    below = begins_line(file, first.start) and (place.parent is None or column(file, first.start) > indent)
    compact = end == node.start and (on_dash or below)
    return Hole(opener, "" if first.start < first.end else lead, first, rest, indent, compact)


def _opener(file: YamlFile, node: Node, place: Place) -> tuple[int, str, int]:
    """Return the end of the text that introduces a value, the text that must follow it there, and the column of its key or dash."""
    parent = place.parent
    if parent is None:
        return node.start, "" if begins_line(file, node.start) else " ", 0
    if parent.is_mapping:
        key = parent.items[2 * place.number]
        colon = after_colon(file, parent, place.number)
        return colon, " " if colon > key.end else ": ", column(file, key.start)
    if parent.style == "flow":
        return node.start, "", 0
    dash = dash_of(file, parent, place.number)
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


def _fill_block(
    file: YamlFile, place: Place, hole: Hole, value: dict[Data, Data] | list[Data], models: list[Node]
) -> list[Edit]:
    style = layout(file, place.parent, place.number)
    lines = list(block_lines(value, style, models))
    if hole.compact:
        indent = column(file, hole.first.start) + len(hole.lead)
        return splice(file, hole, [lines[0], *_indented(lines[1:], indent)])
    if place.parent and place.parent.is_mapping:
        step = style.offset if isinstance(value, list) else style.step
    else:
        step = 2 if place.parent else 0
    below = msgspec.structs.replace(hole, lead="", first=Span(hole.opener, hole.first.end))
    return splice(file, below, ["", *_indented(lines, hole.column + step)])


def _literal(file: YamlFile, node: Node, hole: Hole, text: str) -> list[str]:
    """Return the lines of a block scalar for ``text``, if ``node`` is one and another can hold it."""
    header, *lines = (node.style in {"|", ">"} and literal_lines(text)) or [""]
    if not lines or (header == "|" and node.end == len(file.source.text)):
        return []
    written = file.source.text[hole.rest.start : hole.rest.end].splitlines()
    indent = next((len(line) - len(line.lstrip(" ")) for line in written if not is_blank(line)), 0)
    header = header.replace("|", node.style) if len(lines) == 1 else header
    return [header, *_indented(lines, indent or hole.column + 2)]


def _indented(lines: list[str], indent: int) -> list[str]:
    return [" " * indent + line if line else "" for line in lines]


def splice(file: YamlFile, hole: Hole, lines: list[str]) -> list[Edit]:
    """Put ``lines``, already indented, into ``hole``."""
    first = hole.lead + lines[0]
    rest = "".join(file.source.newline + line for line in lines[1:])
    if hole.first.end == hole.rest.start:
        return [Edit(Span(hole.first.start, hole.rest.end), first + rest)]
    edits = [Edit(hole.first, first), Edit(hole.rest, rest)]
    return [edit for edit in edits if edit.replacement or edit.span.start < edit.span.end]

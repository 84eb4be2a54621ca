"""Inserts entries into a collection and removes them, together with their comments and commas."""

from __future__ import annotations

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Data, Node, YamlFile
from opschema_cli.source.yaml_places import (
    YamlEditError,
    after_properties,
    after_space,
    begins_line,
    blank_lines_above,
    block_header,
    column,
    count,
    entry,
    is_blank,
    last_block_scalar,
    lead,
    line_end,
    line_of,
    line_start,
    own_lines,
    tail,
    value_at,
)
from opschema_cli.source.yaml_render import block_lines, flow_entries
from opschema_cli.source.yaml_style import layout, model
from opschema_cli.source.yaml_values import fill


def insert(file: YamlFile, node: Node, number: int, new: dict[Data, Data] | list[Data]) -> list[Edit]:
    """Insert the only entry of ``new`` into ``node`` as entry ``number``.

    Raises:
        YamlEditError: the entry beside it has an explicit key, or a text that would change.
        ValueError: the entry cannot be written as YAML.
    """
    models = [model(node, number)]
    if not node.items:
        return _insert_first(file, node, new)
    if node.style == "flow":
        return _insert_flow(file, node, number, next(flow_entries(new, models)))
    return _insert_block(file, node, number, list(block_lines(new, layout(file, node, number), models)))


def _insert_first(file: YamlFile, node: Node, new: dict[Data, Data] | list[Data]) -> list[Edit]:
    inside = after_properties(file, node)[1] + 1
    if "#" in file.source.text[inside : node.end]:
        return [_insertion(inside, next(flow_entries(new)))]
    return fill(file, node, new)


def _insert_block(file: YamlFile, node: Node, number: int, lines: list[str]) -> list[Edit]:
    newline, beside = file.source.newline, entry(file, node, max(number - 1, 0))
    indent = column(file, beside.start)
    part = newline * (1 + _blank_lines(file, node, number)) + " " * indent
    text = (newline + " " * indent).join(lines)
    if number:
        _refuse_unterminated(file, value_at(node, number - 1))
        return [_insertion(tail(file, beside.end, indent), part + text)]
    at = beside.start
    return [_insertion(lead(file, at, 0) + indent if begins_line(file, at) else at, text + part)]


def _blank_lines(file: YamlFile, node: Node, number: int) -> int:
    """Return the number of blank lines between a new entry and its neighbours: the number between all existing ones."""
    if number and _keeps_blank_lines(file, value_at(node, number - 1)):
        return 0
    last = count(node) - 1
    pairs = {min(max(n, 1), last) for n in (number - 1, number)} if last else ()
    return min((_blank_lines_before(file, node, n) for n in pairs), default=0)


def _blank_lines_before(file: YamlFile, node: Node, number: int) -> int:
    floor = entry(file, node, number - 1).end
    return blank_lines_above(file, lead(file, entry(file, node, number).start, floor), floor)


def _insert_flow(file: YamlFile, node: Node, number: int, text: str) -> list[Edit]:
    beside = entry(file, node, max(number - 1, 0))
    own = own_lines(file, beside)
    indent = file.source.text[line_start(file, beside.start) : beside.start]
    if number == 0:
        if not own:
            return [_insertion(beside.start, text + ", ")]
        at = lead(file, beside.start, node.start) + len(indent)
        return [_insertion(at, text + "," + file.source.newline + indent)]
    comma = _after_empty(file, beside.end) + ","
    if not own or not (own.group(1) or number == count(node)):
        return [_insertion(beside.end, f"{comma} {text}")]
    end, below = line_end(file, beside.end), file.source.newline + indent + text
    if own.group(1):
        return [_insertion(end, below + ",")]
    if end == beside.end:
        return [_insertion(end, comma + below)]
    return [_insertion(beside.end, comma), _insertion(end, below)]


def _after_empty(file: YamlFile, end: int) -> str:
    """Return the space that keeps the colon of an empty flow value a colon: libyaml rejects ``{a:, b: 1}``."""
    return " " if file.source.text[end - 1] == ":" else ""


def _insertion(at: int, text: str) -> Edit:
    return Edit(Span(at, at), text)


def remove(file: YamlFile, node: Node, number: int) -> list[Edit]:
    """Remove entry ``number`` of ``node``; the last one leaves an empty flow collection.

    Raises:
        YamlEditError: the entry or one beside it has an explicit key, or its line an odd beginning.
    """
    if count(node) == 1:
        return fill(file, node, {} if node.is_mapping else [])
    return _remove_flow(file, node, number) if node.style == "flow" else [_remove_block(file, node, number)]


def _remove_block(file: YamlFile, node: Node, number: int) -> Edit:
    span = entry(file, node, number)
    end = tail(file, span.end, column(file, span.start))
    if not begins_line(file, span.start):
        return _remove_behind_dash(file, node, span, end)
    floor = entry(file, node, number - 1).end if number else 0
    edit = _remove_lines(file, lead(file, span.start, floor), end, floor)
    return _spare_block_scalar(file, edit, value_at(node, number - 1)) if number else edit


def _remove_behind_dash(file: YamlFile, node: Node, span: Span, end: int) -> Edit:
    """Return the edit that removes the first entry, which follows a dash: the second one moves up to the dash, unless other
    comments separate them.
    """
    text, line = file.source.text, line_start(file, span.start)
    below = lead(file, entry(file, node, 1).start, span.end) + span.start - line
    if is_blank(text[end:below]):
        return Edit(Span(span.start, below), "")
    return Edit(Span(line + len(text[line : span.start].rstrip(" \t")), end), "")


def _remove_lines(file: YamlFile, start: int, end: int, floor: int) -> Edit:
    """Return the edit that removes entire lines, and the blank ones above if there are blank ones below, or nothing."""
    source, first, last = file.source, line_of(file, start), line_of(file, end)
    if is_blank(source.line_text(last + 1)):
        first -= blank_lines_above(file, start, floor)
    if last < source.line_count:
        return Edit(Span(source.line_span(first).start, source.line_span(last + 1).start), "")
    return Edit(Span(source.line_span(first - 1).end if first > 1 else 0, end), "")


def _spare_block_scalar(file: YamlFile, edit: Edit, above: Node) -> Edit:
    """Return the edit that preserves the text of a block scalar above: its last line end, and no blank lines from below."""
    source, (start, end) = file.source, edit.span
    if last_block_scalar(above) is None:
        return edit
    if column(file, end):  # the file has no last line end; that of the scalar went in its place
        start = source.line_span(line_of(file, start) + 1).start
    elif _keeps_blank_lines(file, above):
        line = line_of(file, end)
        while line < source.line_count and is_blank(source.line_text(line)):
            line += 1
        end = source.line_span(line).start
    return Edit(Span(start, end), "")


def _keeps_blank_lines(file: YamlFile, node: Node) -> bool:
    scalar = last_block_scalar(node)
    return scalar is not None and "+" in file.source.text[slice(*block_header(file, scalar))]


def _refuse_unterminated(file: YamlFile, node: Node) -> None:
    text, scalar = file.source.text, last_block_scalar(node)
    if scalar and scalar.value and scalar.end == len(text) and "-" not in text[slice(*block_header(file, scalar))]:
        raise YamlEditError("its text would get the line end that the file lacks", scalar.span)


def _remove_flow(file: YamlFile, node: Node, number: int) -> list[Edit]:
    text, span, is_last = file.source.text, entry(file, node, number), number == count(node) - 1
    floor = entry(file, node, number - 1).end if number else node.start
    own = own_lines(file, span)
    if own and (own.group(1) or is_last):
        lines = _remove_lines(file, lead(file, span.start, floor), line_end(file, span.end), floor)
        return [lines] if own.group(1) else [lines, _remove_comma(file, floor)]
    before = text[floor : span.start]
    if number and "#" not in before and (is_last or line_of(file, floor) == line_of(file, span.start)):
        return [Edit(Span(floor, span.end), _after_empty(file, floor))]
    if is_last:
        return [Edit(span, ""), _remove_comma(file, floor)]
    behind = entry(file, node, number + 1).start
    if "#" not in text[span.end : behind]:
        return [Edit(Span(span.start, behind), "")]
    return [Edit(span, ""), _remove_comma(file, span.end)]


def _remove_comma(file: YamlFile, end: int) -> Edit:
    comma = after_space(file, end)
    return Edit(Span(comma, comma + 1), "")

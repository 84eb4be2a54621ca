"""Edits of a YAML file that leave every other character as it is.

Nothing is dumped: each function finds what its change touches and returns the text edits for it, for
:func:`opschema_cli.source.text.apply_edits`. Edits of many entries may be collected from one parse and
applied at once; where they meet, ``apply_edits`` refuses them. Keys are named by their text.

An edit that would also change something else raises :class:`YamlEditError`: aliases, nodes that aliases
share, keys that are repeated or come from a merge, and keys written as ``? key``.
"""

from __future__ import annotations

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import TIMESTAMP, Data, Node, YamlFile, plain_value
from opschema_cli.source.yaml_places import (
    Hole,
    Place,
    YamlEditError,
    after_properties,
    after_space,
    begins_line,
    blank_lines_above,
    block_header,
    column,
    count,
    entries_of,
    entry,
    hole,
    last_block_scalar,
    layout,
    lead,
    line_end,
    line_of,
    line_start,
    model,
    own_lines,
    place_of,
    shared_nodes,
    tail,
)
from opschema_cli.source.yaml_render import (
    Context,
    block_lines,
    double_quoted,
    flow_entries,
    flow_text,
    is_block,
    key_text,
    literal_lines,
    render_scalar,
)

__all__ = [
    "YamlEditError",
    "insert_item",
    "insert_key",
    "quote_scalar",
    "remove_item",
    "remove_key",
    "rename_key",
    "render_scalar",
    "set_value",
]


def set_value(file: YamlFile, node: Node, value: Data) -> list[Edit]:
    """Replace the value ``node`` by ``value``; nothing where they are the same.

    A scalar keeps its quotes where they can hold the new one; a collection is written as a block or in flow
    style as the old one was, else as its neighbours are. Comments inside what is replaced go with it.

    Raises:
        YamlEditError: the node is an alias, shared by aliases, tagged, or a key.
        ValueError: the value cannot be written as YAML.
    """
    place = place_of(file, node)
    _refuse_shared(file, node)
    _refuse_lost_anchors(file, Span(after_properties(file, node)[1], node.end))
    if place.is_key:
        raise YamlEditError("it is a key, not a value; rename the key instead", node.span)
    if node.tag:
        raise YamlEditError(f"its tag `{node.tag}` may not fit a new value", node.span)
    if _holds(file, node, value):
        return []
    return _fill(file, node, place, value)


def quote_scalar(file: YamlFile, node: Node) -> list[Edit]:
    """Turn a plain scalar, key or value, into a double-quoted one with the same text; others stay.

    Raises:
        YamlEditError: the node is no scalar, shared by aliases, or a merge key.
    """
    place = place_of(file, node)
    _refuse_shared(file, node)
    if node.kind != "scalar":
        raise YamlEditError(f"it is a {node.kind}, not a scalar", node.span)
    if node.style:
        return []
    if place.is_key:
        return _replace_key(file, node, double_quoted(node.value))
    return _splice(file, hole(file, node, place), [double_quoted(node.value)])


def rename_key(file: YamlFile, mapping: Node, old: str, new: str) -> list[Edit]:
    """Write the key ``old`` of ``mapping`` as ``new``, in the same quotes.

    Raises:
        YamlEditError: ``old`` is missing, repeated or merged in, or ``new`` is already there.
        ValueError: the key cannot be written as YAML.
    """
    number = _own(file, mapping, old)
    if old == new:
        return []
    _refuse_present(file, mapping, new)
    key = mapping.items[2 * number]
    return _replace_key(file, key, key_text(new, _context(mapping), style=key.style))


def insert_key(
    file: YamlFile,
    mapping: Node,
    key: str,
    value: Data,
    *,
    before: str | None = None,
    after: str | None = None,
) -> list[Edit]:
    """Add ``key: value`` to ``mapping``, at its end or next to another key, written as its neighbours are.

    Raises:
        YamlEditError: the key is already there, its neighbour is missing, or the mapping is shared.
        ValueError: the key or value cannot be written as YAML.
    """
    _refuse_unfit(file, mapping, "mapping")
    _refuse_present(file, mapping, key)
    if before is not None and after is not None:
        raise YamlEditError("a key goes before one key or after another, not both", mapping.span)
    number = count(mapping)
    if before is not None:
        number = _find(file, mapping, before)
    elif after is not None:
        number = _find(file, mapping, after) + 1
    return _insert(file, mapping, number, {key: value})


def remove_key(file: YamlFile, mapping: Node, key: str) -> list[Edit]:
    """Remove ``key``, its value and the comments that belong to it; the last key leaves ``{}``.

    Raises:
        YamlEditError: the key is missing, repeated or merged in, or an anchor in it is needed elsewhere.
    """
    return _remove(file, mapping, _own(file, mapping, key))


def insert_item(file: YamlFile, sequence: Node, index: int, value: Data) -> list[Edit]:
    """Insert ``value`` into ``sequence`` so that it becomes item ``index``, written as its neighbours are.

    Raises:
        YamlEditError: the index is out of range, or the sequence is shared.
        ValueError: the value cannot be written as YAML.
    """
    _refuse_unfit(file, sequence, "sequence")
    if not 0 <= index <= count(sequence):
        raise YamlEditError(f"item {index} cannot follow {count(sequence)} items", sequence.span)
    return _insert(file, sequence, index, [value])


def remove_item(file: YamlFile, sequence: Node, index: int) -> list[Edit]:
    """Remove item ``index`` and the comments that belong to it; the last item leaves ``[]``.

    Raises:
        YamlEditError: there is no such item, or an anchor in it is needed elsewhere.
    """
    _refuse_unfit(file, sequence, "sequence")
    if not 0 <= index < count(sequence):
        raise YamlEditError(f"there is no item {index} among {count(sequence)}", sequence.span)
    return _remove(file, sequence, index)


# What is refused.


def _refuse_shared(file: YamlFile, node: Node) -> None:
    if node.kind == "alias":
        raise YamlEditError(f"it is the alias `*{node.value}`; edit what it points to", node.span)
    for shared in shared_nodes(file):
        if shared.node.start <= node.start and node.end <= shared.node.end:
            name = shared.node.anchor
            raise YamlEditError(f"it lies in `&{name}`, so that each `*{name}` would change too", node.span)


def _refuse_lost_anchors(file: YamlFile, span: Span) -> None:
    for node, aliases in shared_nodes(file):
        inside = span.start <= node.start and node.end <= span.end
        if inside and not all(span.start <= alias < span.end for alias in aliases):
            raise YamlEditError(f"it holds `&{node.anchor}`, which `*{node.anchor}` needs elsewhere", span)


def _refuse_unfit(file: YamlFile, node: Node, kind: str) -> None:
    _refuse_shared(file, node)
    if node.kind != kind:
        raise YamlEditError(f"it is a {node.kind}, not a {kind}", node.span)
    start = after_properties(file, node)[1]
    if node.is_mapping and node.style == "flow" and file.source.text[start] != "{":
        raise YamlEditError("it is a single pair without braces", node.span)


def _refuse_present(file: YamlFile, mapping: Node, key: str) -> None:
    if entries_of(file, mapping, key):
        raise YamlEditError(f"the key `{key}` is already there", mapping.span)


def _find(file: YamlFile, mapping: Node, key: str) -> int:
    numbers = entries_of(file, mapping, key)
    if len(numbers) == 1:
        return numbers[0]
    if numbers:
        raise YamlEditError(f"the key `{key}` is written {len(numbers)} times", mapping.span)
    reason = "comes from a merge" if _is_merged(file, mapping, key) else "is not there"
    raise YamlEditError(f"the key `{key}` {reason}", mapping.span)


def _own(file: YamlFile, mapping: Node, key: str) -> int:
    _refuse_unfit(file, mapping, "mapping")
    number = _find(file, mapping, key)
    node = mapping.items[2 * number]
    if _is_merge(node):
        raise YamlEditError("it merges other keys in; it is no key of its own", node.span)
    if _is_merged(file, mapping, key):
        raise YamlEditError(f"a merge would bring the key `{key}` back", node.span)
    return number


def _is_merge(key: Node) -> bool:
    return key.kind == "scalar" and key.value == "<<" and not key.style


def _is_merged(file: YamlFile, mapping: Node, key: str) -> bool:
    numbers = entries_of(file, mapping, "<<")
    pairs = [mapping.items[2 * number : 2 * number + 2] for number in numbers]
    merges = [node for pair in pairs if _is_merge(pair[0]) for node in pair]
    merged = file.document.data(Node("mapping", mapping.start, mapping.end, items=merges))
    return bool(merges) and isinstance(merged, dict) and (key in merged or plain_value(key) in merged)


# Values.


def _holds(file: YamlFile, node: Node, value: Data) -> bool:
    if node.kind == "scalar" and not node.style and TIMESTAMP.fullmatch(node.value):
        return False  # a date to the reader, text to us
    return repr(file.document.data(node)) == repr(value)


def _context(parent: Node | None) -> Context:
    return "flow" if parent and parent.style == "flow" else "block"


def _fill(file: YamlFile, node: Node, place: Place, value: Data) -> list[Edit]:
    gap, parent, context = hole(file, node, place), place.parent, _context(place.parent)
    models = [node]
    if parent:
        models += model(parent, place.entry).items[parent.is_mapping :: 1 + parent.is_mapping]
    if isinstance(value, str) and node.style in {"|", ">"}:
        literal = _literal(file, node, gap, value)
        if literal:
            return _splice(file, gap, literal)
    if isinstance(value, list | dict):
        if context == "block" and is_block(value, models, default=node.style != "flow"):
            return _fill_block(file, place, gap, value, models)
    elif node.kind == "scalar" and node.end > node.start:
        return _splice(file, gap, [render_scalar(value, context, node.style)])
    return _splice(file, gap, [flow_text(value, models, context)])


def _fill_block(
    file: YamlFile, place: Place, gap: Hole, value: dict[Data, Data] | list[Data], models: list[Node]
) -> list[Edit]:
    style = layout(file, place.parent, place.entry)
    lines = list(block_lines(value, style, models))
    if gap.compact:
        indent = column(file, gap.first.start) + len(gap.lead)
        return _splice(file, gap, [lines[0], *_indented(lines[1:], indent)])
    step = style.offset if isinstance(value, list) else style.step
    if place.parent is None or place.parent.is_sequence:
        step = 2 if place.parent else 0
    below = gap._replace(lead="", first=Span(gap.opener, gap.first.end))
    return _splice(file, below, ["", *_indented(lines, gap.column + step)])


def _literal(file: YamlFile, node: Node, gap: Hole, text: str) -> list[str] | None:
    lines = literal_lines(text)
    if lines is None or (lines[0] == "|" and node.end == len(file.source.text)):
        return None
    written = file.source.text[gap.rest.start : gap.rest.end].splitlines()
    indent = next((len(line) - len(line.lstrip(" ")) for line in written if line.strip()), 0)
    header = lines[0].replace("|", node.style) if len(lines) == 2 else lines[0]
    return [header, *_indented(lines[1:], indent or gap.column + 2)]


def _indented(lines: list[str], indent: int) -> list[str]:
    return [" " * indent + line if line else "" for line in lines]


def _splice(file: YamlFile, gap: Hole, lines: list[str]) -> list[Edit]:
    first = gap.lead + lines[0]
    rest = "".join(file.source.newline + line for line in lines[1:])
    if gap.first.end == gap.rest.start:
        return [Edit(Span(gap.first.start, gap.rest.end), first + rest)]
    edits = [Edit(gap.first, first), Edit(gap.rest, rest)]
    return [edit for edit in edits if edit.replacement or edit.span.start < edit.span.end]


def _replace_key(file: YamlFile, key: Node, text: str) -> list[Edit]:
    _refuse_shared(file, key)
    if _is_merge(key):
        raise YamlEditError("it merges other keys in; it is no key of its own", key.span)
    return [Edit(Span(after_properties(file, key)[1], key.end), text)]


# Entries.


def _insert(file: YamlFile, node: Node, number: int, new: dict[Data, Data] | list[Data]) -> list[Edit]:
    models = [model(node, number)]
    if not node.items:
        return _insert_first(file, node, new)
    if node.style == "flow":
        return _insert_flow(file, node, number, next(flow_entries(new, models)))
    lines = list(block_lines(new, layout(file, node, number), models))
    return _insert_block(file, node, number, lines)


def _insert_first(file: YamlFile, node: Node, new: dict[Data, Data] | list[Data]) -> list[Edit]:
    inside = after_properties(file, node)[1] + 1
    if "#" in file.source.text[inside : node.end]:
        return [_insertion(inside, next(flow_entries(new)))]
    return _fill(file, node, place_of(file, node), new)


def _insert_block(file: YamlFile, node: Node, number: int, lines: list[str]) -> list[Edit]:
    newline = file.source.newline
    beside = entry(file, node, max(number - 1, 0))
    indent = column(file, beside.start)
    blank = newline * _blank_lines(file, node, number)
    text = (newline + " " * indent).join(lines)
    if number == 0:
        at = beside.start
        if begins_line(file, at):
            at = lead(file, at, 0) + indent
        return [_insertion(at, text + newline + blank + " " * indent)]
    _refuse_unterminated(file, node.items[_last(node, number - 1)])
    return [_insertion(tail(file, beside.end, indent), newline + blank + " " * indent + text)]


def _blank_lines(file: YamlFile, node: Node, number: int) -> int:
    """How many blank lines part a new entry from its neighbours: as many as part all of these."""
    if number and _keeps_blank_lines(file, node.items[_last(node, number - 1)]):
        return 0
    pairs = [n for n in (number - 1, number) if 1 <= n < count(node)] or [1] * (count(node) > 1)
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
    if not own or not (own.group(1) or number == count(node)):
        return [_insertion(beside.end, ", " + text)]
    end, below = line_end(file, beside.end), file.source.newline + indent + text
    if own.group(1):
        return [_insertion(end, below + ",")]
    if end == beside.end:
        return [_insertion(end, "," + below)]
    return [_insertion(beside.end, ","), _insertion(end, below)]


def _insertion(at: int, text: str) -> Edit:
    return Edit(Span(at, at), text)


def _remove(file: YamlFile, node: Node, number: int) -> list[Edit]:
    _refuse_lost_anchors(file, entry(file, node, number))
    if count(node) == 1:
        return _fill(file, node, place_of(file, node), {} if node.is_mapping else [])
    return (_remove_flow if node.style == "flow" else _remove_block)(file, node, number)


def _remove_block(file: YamlFile, node: Node, number: int) -> list[Edit]:
    span = entry(file, node, number)
    indent = column(file, span.start)
    end = tail(file, span.end, indent)
    if not begins_line(file, span.start):
        return [_remove_behind_dash(file, node, span, end)]
    if number == 0:
        return [_remove_lines(file, lead(file, span.start, 0), end, 0)]
    floor, above = entry(file, node, number - 1).end, node.items[_last(node, number - 1)]
    edit = _remove_lines(file, lead(file, span.start, floor), end, floor)
    return [_spare_block_scalar(file, edit, above)]


def _remove_behind_dash(file: YamlFile, node: Node, span: Span, end: int) -> Edit:
    """The first entry stands behind a dash: the second moves up to it, unless other comments part them."""
    text, indent = file.source.text, column(file, span.start)
    below = lead(file, entry(file, node, 1).start, span.end) + indent
    if not text[end:below].strip():
        return Edit(Span(span.start, below), "")
    dash = line_start(file, span.start) + len(text[line_start(file, span.start) : span.start].rstrip())
    return Edit(Span(dash, end), "")


def _remove_lines(file: YamlFile, start: int, end: int, floor: int) -> Edit:
    """Remove whole lines, and the blank ones above where there are blank ones below, or nothing."""
    source = file.source
    first, last = line_of(file, start), line_of(file, end)
    if not source.line_text(last + 1).strip():
        first -= blank_lines_above(file, start, floor)
    if last < source.line_count:
        return Edit(Span(source.line_span(first).start, source.line_span(last + 1).start), "")
    start = source.line_span(first - 1).end if first > 1 else 0
    return Edit(Span(start, end), "")


def _spare_block_scalar(file: YamlFile, edit: Edit, above: Node) -> Edit:
    """Keep the text of a block scalar above: its last line end, and what blank lines would add to it."""
    source, scalar, (start, end) = file.source, last_block_scalar(above), edit.span
    if scalar is None:
        return edit
    if not begins_line(file, start):  # from the line end above, as the file has none at its own end
        start = source.line_span(line_of(file, start) + 1).start
    if _keeps_blank_lines(file, above) and end == line_start(file, end):
        line = line_of(file, end)
        while line < source.line_count and not source.line_text(line).strip():
            line += 1
        end = source.line_span(line).start
    return Edit(Span(start, end), "")


def _keeps_blank_lines(file: YamlFile, node: Node) -> bool:
    scalar = last_block_scalar(node)
    return scalar is not None and "+" in file.source.text[slice(*block_header(file, scalar))]


def _refuse_unterminated(file: YamlFile, node: Node) -> None:
    text, scalar = file.source.text, last_block_scalar(node)
    if (
        scalar
        and scalar.value
        and scalar.end == len(text)
        and "-" not in text[slice(*block_header(file, scalar))]
    ):
        raise YamlEditError("its text would get the line end that the file lacks", scalar.span)


def _remove_comma(file: YamlFile, end: int) -> Edit:
    comma = after_space(file, end)
    return Edit(Span(comma, comma + 1), "")


def _remove_flow(file: YamlFile, node: Node, number: int) -> list[Edit]:
    text, span, is_last = file.source.text, entry(file, node, number), number == count(node) - 1
    floor = entry(file, node, number - 1).end if number else node.start
    own = own_lines(file, span)
    if own and (own.group(1) or is_last):
        edit = _remove_lines(file, lead(file, span.start, floor), line_end(file, span.end), floor)
        return [edit] if own.group(1) else [edit, _remove_comma(file, floor)]
    before = text[floor : span.start]
    if number and "#" not in before and (is_last or line_of(file, floor) == line_of(file, span.start)):
        return [Edit(Span(floor, span.end), "")]
    if is_last:
        return [Edit(span, ""), _remove_comma(file, floor)]
    stop = entry(file, node, number + 1).start
    if "#" not in text[span.end : stop]:
        return [Edit(Span(span.start, stop), "")]
    return [Edit(span, ""), _remove_comma(file, span.end)]


def _last(node: Node, number: int) -> int:
    return 2 * number + 1 if node.is_mapping else number

"""Edits of a YAML file that leave every other character as it is.

Nothing is dumped: each function finds what its change touches and returns the text edits for it, for
:func:`opschema_cli.source.text.apply_edits`. Keys are named by their text.

Edits of many entries may be collected from one parse and applied at once; where two of them meet,
``apply_edits`` refuses them. Each knows only the file as it was parsed: to take *every* entry from a
collection, set it to an empty one.

An edit that would also change something else raises :class:`YamlEditError`: aliases and what they share,
keys that are repeated or come from a merge, keys written as ``? key``.
"""

from __future__ import annotations

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Data, Node, YamlFile
from opschema_cli.source.yaml_entries import insert, remove
from opschema_cli.source.yaml_places import (
    YamlEditError,
    after_properties,
    aliases,
    count,
    entries_of,
    entry,
    has_odd_breaks,
    place_of,
)
from opschema_cli.source.yaml_render import double_quoted, key_text, render_scalar
from opschema_cli.source.yaml_scalars import TIMESTAMP, plain_value
from opschema_cli.source.yaml_values import context_in, fill, hole_of, splice

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
    _refuse_shared(file, node)
    _refuse_lost_anchors(file, Span(after_properties(file, node)[1], node.end))
    if place_of(file, node).is_key:
        raise YamlEditError("it is a key, not a value; rename the key instead", node.span)
    if node.tag:
        raise YamlEditError(f"its tag `{node.tag}` may not fit a new value", node.span)
    if _holds(file, node, value):
        return []
    return fill(file, node, value)


def quote_scalar(file: YamlFile, node: Node) -> list[Edit]:
    """Turn a plain scalar, key or value, into a double-quoted one with the same text; others stay.

    Raises:
        YamlEditError: the node is not a scalar, shared by aliases, or a merge key.
    """
    place = place_of(file, node)
    _refuse_shared(file, node)
    if node.kind != "scalar":
        raise YamlEditError(f"it is a {node.kind}, not a scalar", node.span)
    if node.style:
        return []
    if place.is_key:
        return _replace_key(file, node, double_quoted(node.value))
    return splice(file, hole_of(file, node, place), [double_quoted(node.value)])


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
    return _replace_key(file, key, key_text(new, context_in(mapping), style=key.style))


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
    return insert(file, mapping, number, {key: value})


def remove_key(file: YamlFile, mapping: Node, key: str) -> list[Edit]:
    """Remove ``key``, its value and the comments that belong to it; the last key leaves ``{}``.

    Raises:
        YamlEditError: the key is missing, repeated or merged in, or an anchor in it is needed elsewhere.
    """
    number = _own(file, mapping, key)
    _refuse_lost_anchors(file, entry(file, mapping, number))
    return remove(file, mapping, number)


def insert_item(file: YamlFile, sequence: Node, index: int, value: Data) -> list[Edit]:
    """Insert ``value`` into ``sequence`` so that it becomes item ``index``, written as its neighbours are.

    Raises:
        YamlEditError: the index is out of range, or the sequence is shared.
        ValueError: the value cannot be written as YAML.
    """
    _refuse_unfit(file, sequence, "sequence")
    if not 0 <= index <= count(sequence):
        raise YamlEditError(f"item {index} cannot follow {count(sequence)} items", sequence.span)
    return insert(file, sequence, index, [value])


def remove_item(file: YamlFile, sequence: Node, index: int) -> list[Edit]:
    """Remove item ``index`` and the comments that belong to it; the last item leaves ``[]``.

    Raises:
        YamlEditError: there is no such item, or an anchor in it is needed elsewhere.
    """
    _refuse_unfit(file, sequence, "sequence")
    if not 0 <= index < count(sequence):
        raise YamlEditError(f"there is no item {index} among {count(sequence)}", sequence.span)
    _refuse_lost_anchors(file, entry(file, sequence, index))
    return remove(file, sequence, index)


# What is refused.


def _refuse_shared(file: YamlFile, node: Node) -> None:
    if has_odd_breaks(file):
        raise YamlEditError("the file holds U+0085, U+2028 or U+2029, which break lines in YAML only", node.span)
    if node.kind == "alias":
        raise YamlEditError(f"it is the alias `*{node.value}`; edit what it points to", node.span)
    for anchored, _ in aliases(file):
        if anchored.start <= node.start and node.end <= anchored.end:
            name = anchored.anchor
            raise YamlEditError(f"it lies in `&{name}`, so that each `*{name}` would change too", node.span)


def _refuse_lost_anchors(file: YamlFile, span: Span) -> None:
    for anchored, starts in aliases(file):
        inside = span.start <= anchored.start and anchored.end <= span.end
        if inside and not all(span.start <= start < span.end for start in starts):
            name = anchored.anchor
            raise YamlEditError(f"it holds `&{name}`, which `*{name}` needs elsewhere", span)


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
        raise YamlEditError("it merges other keys in; it is not a key of its own", node.span)
    if _is_merged(file, mapping, key):
        raise YamlEditError(f"a merge would bring the key `{key}` back", node.span)
    return number


def _is_merge(key: Node) -> bool:
    return key.kind == "scalar" and key.value == "<<" and not key.style


def _is_merged(file: YamlFile, mapping: Node, key: str) -> bool:
    merges = [n for n in entries_of(file, mapping, "<<") if _is_merge(mapping.items[2 * n])]
    items = [node for n in merges for node in mapping.items[2 * n : 2 * n + 2]]
    merged = file.document.data(Node("mapping", mapping.start, mapping.end, items=tuple(items)))
    return isinstance(merged, dict) and (key in merged or plain_value(key) in merged)


def _holds(file: YamlFile, node: Node, value: Data) -> bool:
    if node.kind == "scalar" and not node.style and TIMESTAMP.fullmatch(node.value):
        return False  # a date to the reader, text to us
    return repr(file.document.data(node)) == repr(value)


def _replace_key(file: YamlFile, key: Node, text: str) -> list[Edit]:
    _refuse_shared(file, key)
    if _is_merge(key):
        raise YamlEditError("it merges other keys in; it is not a key of its own", key.span)
    return [Edit(Span(after_properties(file, key)[1], key.end), text)]

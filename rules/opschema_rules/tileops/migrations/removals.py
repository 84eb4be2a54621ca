"""Several keys or items taken out of one collection at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from opschema_cli.source.text import Edit, EditConflictError, Source, apply_edits
from opschema_cli.source.yaml import Node, YamlFile, YamlSyntaxError
from opschema_cli.source.yaml_compose import parse
from opschema_cli.source.yaml_edit import YamlEditError, remove_item, remove_key, set_value
from opschema_cli.source.yaml_places import column, count

T = TypeVar("T", str, int)


def remove_keys(file: YamlFile, mapping: Node, keys: Sequence[str]) -> list[Edit]:
    """Remove keys of one mapping.

    Raises:
        YamlEditError: one cannot be removed, or not together with the others.
    """
    return _remove(file, mapping, list(keys), remove_key)


def remove_items(file: YamlFile, sequence: Node, indexes: Sequence[int]) -> list[Edit]:
    """Remove items of one sequence; errors as for :func:`remove_keys`."""
    return _remove(file, sequence, sorted(indexes, reverse=True), remove_item)


def _remove(
    file: YamlFile, node: Node, which: list[T], remove: Callable[[YamlFile, Node, T], list[Edit]]
) -> list[Edit]:
    if len(which) == count(node):
        return set_value(file, node, {} if node.is_mapping else [])
    edits = [edit for item in which for edit in remove(file, node, item)]
    try:
        apply_edits(file.source.text, edits)
    except EditConflictError:
        return [_one_by_one(file, node, which, remove)]
    return edits


def _one_by_one(file: YamlFile, node: Node, which: list[T], remove: Callable[[YamlFile, Node, T], list[Edit]]) -> Edit:
    """Neighbours share a comma or a dash: take them out of a copy of the collection, one after the other."""
    margin = " " * column(file, node.start) if node.style == "block" else ""
    text = margin + file.source.text[node.start : node.end]
    for item in which:
        try:
            copy = parse(Source(file.path, text))
        except YamlSyntaxError as error:
            raise YamlEditError(error.reason, node.span) from None
        if copy.root is not None:
            text = apply_edits(text, remove(copy, copy.root, item))
    return Edit(node.span, text.removeprefix(margin))

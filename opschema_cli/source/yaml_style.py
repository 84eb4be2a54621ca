"""The style of a YAML file where something is inserted: its indentation, and the nodes to imitate."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec.structs import replace

from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_places import after_properties, column, count, dash_of, walk
from opschema_cli.source.yaml_render import Layout

_DASH = re.compile(r"- +")


def model(parent: Node, number: int) -> Node:
    """Return ``parent`` with only the entries around ``number``, nearest first, as a model for a new entry."""
    near = [n for n in (number, number - 1, number + 1, number - 2) if 0 <= n < count(parent)]
    width = 2 if parent.is_mapping else 1
    items = [node for n in near for node in parent.items[n * width : (n + 1) * width]]
    return Node(parent.kind, parent.start, parent.end, style=parent.style, items=tuple(items))


def layout(file: YamlFile, parent: Node | None, number: int) -> Layout:
    """Return the indentation of block collections around an entry, or else in the file."""
    house = _house_layout(file)
    if parent is None or parent.style == "flow":
        return house
    if parent.is_sequence:
        return replace(house, dash=_dash(file, parent, min(number, count(parent) - 1)))
    step, offset = _indents(file, model(parent, number).pairs())
    return replace(house, step=step or house.step, offset=house.offset if offset is None else offset)


@lru_cache(maxsize=8)
def _house_layout(file: YamlFile) -> Layout:
    pairs = (pair for node in walk(file.root) if node.style == "block" for pair in node.pairs())
    step, offset = _indents(file, pairs)
    step = step or 2
    return Layout(step, step if offset is None else offset)


def _indents(file: YamlFile, pairs: Iterable[tuple[Node, Node]]) -> tuple[int | None, int | None]:
    """Return the distances of the first block mapping and the first block sequence among ``pairs`` from their keys."""
    found: dict[str, int] = {}
    for key, value in pairs:
        if value.style == "block" and value.kind not in found:
            found[value.kind] = column(file, after_properties(file, value)[1]) - column(file, key.start)
            if len(found) == 2:
                break
    return found.get("mapping"), found.get("sequence")


def _dash(file: YamlFile, node: Node, number: int) -> str:
    dash = _DASH.match(file.source.text, dash_of(file, node, number))
    return dash.group() if dash and dash.end() == node.items[number].start else "- "

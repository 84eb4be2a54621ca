"""The values in a workload row, each with its node, including those from a merge."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from opschema_cli.source.yaml import Node
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.scalar_roles import is_misread
from opschema_rules.tileops.schema_validator import Path

MAX_MERGES = 100
"""Maximum number of mappings to examine for one row."""


def given(entry: OpEntry, row: Row) -> Iterator[tuple[str, Node]]:
    """Yield each key of a row with its value as written, possibly an alias; repeated keys are left out."""
    nodes: dict[str, Node] = {}
    for mapping in islice(entry.file.document.merging(row.node), MAX_MERGES):
        own = {key.value: value for key, value in mapping.pairs() if key.kind == "scalar"}
        nodes = {**own, **nodes}
    unclear = row.repeated
    yield from ((key, nodes[key]) for key in row.data if key in nodes and key not in unclear)


def holds_misread(entry: OpEntry, path: Path, node: Node) -> bool:
    """Whether a value has a scalar in it that a reader takes otherwise than it looks, or a tag."""
    waiting = [node]
    for count, item in enumerate(waiting):  # which grows meanwhile
        item = entry.file.document.follow(item)
        if item.tag or count > MAX_MERGES or is_misread(entry, path, item):
            return True
        waiting += item.items
    return False

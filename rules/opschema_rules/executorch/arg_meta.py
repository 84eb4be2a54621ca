"""Reads ``arg_meta`` of kernels, and the aliases of an entry that it names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from opschema_cli.source.yaml import Node
from opschema_rules.executorch.model import OpEntry

ALIASES = ("type_alias", "dim_order_alias")
"""The fields that define aliases."""


class Spec(msgspec.Struct, frozen=True):
    """An argument of ``arg_meta`` with the nodes of its two aliases; both None if they are not two."""

    key: Node
    value: Node
    aliases: tuple[Node, Node] | None


def specs_of(entry: OpEntry, item: Node) -> list[Spec] | None:
    """Return the arguments of a kernel's ``arg_meta``; None if it is null or not a mapping."""
    meta = item.get("arg_meta") if item.is_mapping else None
    meta = entry.file.document.follow(meta) if meta is not None else None
    if meta is None or not meta.is_mapping:
        return None
    specs = []
    for key, node in meta.pairs():
        value = entry.file.document.follow(node)
        parts = [entry.file.document.follow(one) for one in value.items] if value.is_sequence else []
        specs.append(Spec(key, value, (parts[0], parts[1]) if len(parts) == 2 else None))
    return specs


def aliases_of(entry: OpEntry, field: str) -> Mapping[str, tuple[Node, Node]]:
    """The aliases of an entry by name, each with its key and value."""
    node = entry.get(field)
    pairs = node.pairs() if node is not None and node.is_mapping else ()
    return {key.value: (key, entry.file.document.follow(value)) for key, value in pairs}

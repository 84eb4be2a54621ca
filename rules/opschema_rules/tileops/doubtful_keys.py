"""Keys of a mapping with an unclear meaning: repeated, or only similar to a known one."""

from __future__ import annotations

from functools import lru_cache

from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import may_be_near

NEARLY = 0.7
"""The similarity of a misspelt key to the intended one (difflib's ratio)."""


def is_doubtful(owner: Node, name: str) -> bool:
    """Whether the meaning of a mapping's key is unclear: it has two values, or only a similarly spelt key is present.

    The rules for structure and for repeated keys say that; no other rule judges what follows from it.
    """
    if owner.kind != "mapping":
        return False
    values = owner.values_of(name)
    if values:
        return len(values) > 1 and not all(_alike(value, values[0]) for value in values[1:])
    return _is_misspelt(name, tuple(key.value for key in owner.items[::2] if key.kind == "scalar"))


def repeated(owner: Node) -> set[str]:
    """Return the keys with two values in a mapping."""
    first: dict[str, Node] = {}
    pairs = [(key.value, value) for key, value in owner.pairs() if key.kind == "scalar"]
    return {key for key, value in pairs if not _alike(first.setdefault(key, value), value)}


def _alike(one: Node, other: Node) -> bool:
    """Whether two nodes say the same."""
    if one is other:
        return True
    if (one.kind, one.value, one.tag, len(one.items)) != (other.kind, other.value, other.tag, len(other.items)):
        return False
    return all(map(_alike, one.items, other.items))


@lru_cache(maxsize=2048)
def _is_misspelt(name: str, keys: tuple[str, ...]) -> bool:
    return may_be_near(name, [key for key in keys if len(key) < 2 * len(name)], NEARLY)

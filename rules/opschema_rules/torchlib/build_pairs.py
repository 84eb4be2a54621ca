"""Pairs of C++ places that are compiled into one library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from opschema_cli.source.preprocessor import Condition, are_nested
from opschema_rules.torchlib.model import Tree

MAX_COMPARED = 16
"""Maximum number of places of one key to compare a place with."""

_T = TypeVar("_T")


class Compiled(NamedTuple):
    """A place of a file under some conditions of the preprocessor."""

    path: str
    conditions: tuple[Condition, ...]


def target_of_both(tree: Tree, one: Compiled, other: Compiled) -> str:
    """Return the library that is known to contain two places of different files if it contains either; empty if there is none."""
    apart = one.path != other.path and are_nested(one.conditions, other.conditions)
    return tree.target_of_both(one.path, other.path) if apart else ""


def linked_pairs(tree: Tree, items: Iterable[tuple[object, Compiled, _T]]) -> Iterator[tuple[_T, _T, str]]:
    """Items of one key in different files of one library: an item, the first one before it, and the library.

    An item is its key, its place and what is returned for it.
    """
    first: dict[object, list[tuple[Compiled, _T]]] = {}
    for key, place, item in items:
        before = first.setdefault(key, [])
        named = ((other, target_of_both(tree, there, place)) for there, other in before)
        yield from [(item, other, target) for other, target in named if target][:1]
        if len(before) < MAX_COMPARED:
            before.append((place, item))

"""Structs with fields that are ignored in comparisons."""

from __future__ import annotations

from typing import Any

import msgspec


class KeyedStruct(msgspec.Struct, frozen=True, eq=False):
    """A struct that equals another of its type if their ``key`` is equal; subclasses inherit this if they are declared without
    ``eq``.
    """

    @property
    def key(self) -> Any:
        """The value to compare and to hash."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, type(self)) else NotImplemented

    __ne__ = object.__ne__  # the opposite; that of Struct goes by identity

    def __hash__(self) -> int:
        return hash(self.key)

"""What packs tell from the content of one file and from nothing else: told once for each content, and kept for later runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from opschema_cli.cache import Cache, decoded

T = TypeVar("T")
C = TypeVar("C")

_KIND = "readings"

SPARE = 4 * 1024 * 1024
"""Most bytes of values that this run did not ask for which a shelf keeps beside those that it did."""


class Reading(msgspec.Struct, Generic[C, T], frozen=True):
    """What a pack tells from one content of a file: its text, its bytes, its facts, or the tree of its C++.

    ``name`` is its own among all readings, ``read`` gives a value of the type ``kind``, which msgspec can encode.
    """

    name: str
    read: Callable[[C], T]
    kind: type[T]


class Shelf(Generic[T]):
    """What one reading told, by the digest of what it was told from."""

    def __init__(self, kind: type[T], stored: bytes | None) -> None:
        self._kind = kind
        self._stored = decoded(stored, dict[str, msgspec.Raw]) or {}
        self._told: dict[str, T] = {}
        self.fresh = False
        """Whether something is told that was not stored."""

    def known(self, digest: str) -> T | None:
        """What was told of a content; None if nothing was."""
        found = self._told.get(digest)
        if found is None:
            found = decoded(self._stored.get(digest), self._kind)
            if found is not None:
                self._told[digest] = found
        return found

    def tell(self, digest: str, value: T) -> None:
        """Keep what is told of a content."""
        self._told[digest] = value
        self.fresh = True

    def content(self, stored: bytes | None) -> bytes:
        """What is to be stored in place of what is stored by now."""
        known = {**self._stored, **(decoded(stored, dict[str, msgspec.Raw]) or {})}
        room, kept = SPARE, dict[str, msgspec.Raw]()
        for digest in reversed([digest for digest in known if digest not in self._told]):  # the latest first
            room -= len(digest) + len(bytes(known[digest]))
            if room < 0:
                break
            kept[digest] = known[digest]
        return msgspec.msgpack.encode({**dict(reversed(kept.items())), **self._told})


class Readings:
    """The shelves of one run. ``stamp`` identifies the code of the packs, under which they are cached; empty, they are not."""

    def __init__(self, cache: Cache, stamp: str) -> None:
        self._cache = cache
        self._stamp = stamp
        self._shelves: dict[str, Shelf[object]] = {}

    def shelf(self, reading: Reading[Any, T]) -> Shelf[T]:
        """The shelf of one reading."""
        if reading.name not in self._shelves:
            key = f"{self._stamp}/{reading.name}"
            stored = self._cache.get(_KIND, [key]).get(key) if self._stamp else None
            self._shelves[reading.name] = Shelf(reading.kind, stored)
        return self._shelves[reading.name]  # type: ignore[return-value]

    def save(self) -> None:
        """Keep for later runs what was told."""
        fresh = {f"{self._stamp}/{name}": shelf for name, shelf in self._shelves.items() if shelf.fresh}
        if self._stamp and fresh:
            stored = self._cache.get(_KIND, fresh)  # another process may have stored more since
            self._cache.put(_KIND, {key: shelf.content(stored.get(key)) for key, shelf in fresh.items()})
            for shelf in fresh.values():
                shelf.fresh = False

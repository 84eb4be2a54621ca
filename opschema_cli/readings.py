"""Values that packs read from the content of one file and nothing else: read once per content, and cached for later runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from opschema_cli.cache import Cache, decoded

T = TypeVar("T")
C = TypeVar("C")

_KIND = "readings"

_VARIANT = "\0variant"
"""The key under which a shelf keeps its variant, if it has one."""

SPARE = 4 * 1024 * 1024
"""Maximum size in bytes of the values that a shelf keeps although this run did not request them."""


class Reading(msgspec.Struct, Generic[C, T], frozen=True):
    """A function of the content of one file: its text, its bytes, its facts, or the tree of its C++.

    ``name`` is unique among all readings; ``read`` returns a value of the type ``kind``, which msgspec can encode. ``along`` are
    readings of the same content that are asked for later: they are computed at once, so that a file is read once for all. A reading
    of a text is ``costly`` if it takes far longer than to send the text to another process. ``variant`` is what ``read`` depends
    on besides the content, such as the words that it looks for: values are known as long as it stays the same.
    """

    name: str
    read: Callable[[C], T]
    kind: type[T]
    along: tuple[Reading[C, Any], ...] = ()
    costly: bool = False
    variant: str = ""


class Shelf(Generic[T]):
    """The values of one variant of a reading, by the digest of the content."""

    def __init__(self, kind: type[T], stored: bytes | None, variant: str = "") -> None:
        self._kind = kind
        self.variant = variant
        self._stored = self._of_variant(stored)
        self._values: dict[str, T] = {}
        self.fresh: set[str] = set()
        """The digests of values that are not stored yet."""
        self.puts = 0
        """How many values have been put."""
        self._last_puts: dict[str, int] = {}

    def _of_variant(self, stored: bytes | None) -> dict[str, msgspec.Raw]:
        """Stored values, if they are of this variant."""
        found = decoded(stored, dict[str, msgspec.Raw]) or {}
        variant = decoded(found.pop(_VARIANT, None), str) or ""
        return found if variant == self.variant else {}

    @property
    def _mark(self) -> dict[str, bytes]:
        """The entry that stores the variant."""
        return {_VARIANT: msgspec.msgpack.encode(self.variant)} if self.variant else {}

    def get(self, digest: str) -> T | None:
        """Return the value for a content digest, or None if there is none."""
        found = self._values.get(digest)
        if found is None:
            found = decoded(self._stored.get(digest), self._kind)
            if found is not None:
                self._values[digest] = found
        return found

    def put(self, digest: str, value: T) -> None:
        """Keep the value of a content."""
        self._values[digest] = value
        self.fresh.add(digest)
        self.puts += 1
        self._last_puts[digest] = self.puts

    def is_put_after(self, digest: str, puts: int) -> bool:
        """Whether a value has been put since so many were."""
        return self._last_puts.get(digest, 0) > puts

    def encoded(self) -> dict[str, bytes]:
        """The values that are not stored yet."""
        fresh = {digest: msgspec.msgpack.encode(self._values[digest]) for digest in self.fresh}
        return {**fresh, **self._mark}

    def take(self, encoded: Mapping[str, bytes]) -> None:
        """Put values that another process has encoded, if they are of this variant."""
        if (decoded(encoded.get(_VARIANT), str) or "") != self.variant:
            return
        for digest, data in encoded.items():
            value = decoded(data, self._kind) if digest != _VARIANT else None
            if value is not None:
                self.put(digest, value)

    def content(self, stored: bytes | None) -> bytes:
        """The bytes to store in place of ``stored``, which another run may have written since."""
        known = {**self._stored, **self._of_variant(stored)}
        room, kept = SPARE, dict[str, msgspec.Raw]()
        for digest in reversed([digest for digest in known if digest not in self._values]):  # the latest first
            room -= len(digest) + len(bytes(known[digest]))
            if room < 0:
                break
            kept[digest] = known[digest]
        marks = {key: msgspec.Raw(value) for key, value in self._mark.items()}
        return msgspec.msgpack.encode({**dict(reversed(kept.items())), **self._values, **marks})


class Readings:
    """The shelves of one run, cached under ``stamp``, which identifies the code of the packs; not cached if it is empty."""

    def __init__(self, cache: Cache, stamp: str) -> None:
        self.cache = cache
        self._stamp = stamp
        self._shelves: dict[str, Shelf[object]] = {}
        self._taken: dict[str, dict[str, bytes]] = {}

    def shelf(self, name: str, kind: type[T], variant: str = "") -> Shelf[T]:
        """Return the shelf of one reading, or of other values under a unique name. Only the shelf of the latest variant exists."""
        if name not in self._shelves or self._shelves[name].variant != variant:
            key = f"{self._stamp}/{name}"
            stored = self.cache.get(_KIND, [key]).get(key) if self._stamp else None
            self._shelves[name] = Shelf(kind, stored, variant)
            self._shelves[name].take(self._taken.pop(name, {}))
        return self._shelves[name]  # type: ignore[return-value]

    def of(self, reading: Reading[Any, T]) -> Shelf[T]:
        """The shelf of a reading."""
        return self.shelf(reading.name, reading.kind, reading.variant)

    def save(self) -> None:
        """Cache new values for later runs."""
        fresh = {f"{self._stamp}/{name}": shelf for name, shelf in self._shelves.items() if shelf.fresh}
        if self._stamp and fresh:
            stored = self.cache.get(_KIND, fresh)  # another process may have stored more since
            self.cache.put(_KIND, {key: shelf.content(stored.get(key)) for key, shelf in fresh.items()})
            self.forget_fresh()

    def forget_fresh(self) -> None:
        """Treat all values as stored. From now on, only values computed by this process are fresh."""
        for shelf in self._shelves.values():
            shelf.fresh = set()

    def fresh(self) -> dict[str, dict[str, bytes]]:
        """The values that are not stored yet, by the names of their shelves."""
        return {name: shelf.encoded() for name, shelf in self._shelves.items() if shelf.fresh}

    def take(self, fresh: Mapping[str, Mapping[str, bytes]]) -> None:
        """Put the fresh values of another process on their shelves."""
        for name, encoded in fresh.items():
            if name in self._shelves:
                self._shelves[name].take(encoded)
            else:
                self._taken.setdefault(name, {}).update(encoded)

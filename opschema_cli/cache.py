"""A cache of data derived from file contents, in sqlite, outside the linted tree.

Keys are content hashes, so an entry is never stale, only unused. The cache is an optimisation: whatever
is wrong with its file, the run goes on without it.

Each value is stored behind its seal: a digest of kind, key and value under the user's own key. A value whose seal does not
fit is not there, so neither a damaged disk nor another program can bring a finding or keep one back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from opschema_cli.user_key import user_key

T = TypeVar("T")

MAX_AGE_DAYS = 30
"""Days after which unused entries are removed."""

_PATIENCE = 2.0
"""Seconds to wait for a locked file."""

_PAGE = 16_384
"""Bytes of a page."""

KEY_NAME = "user.key"

_SEAL = 16
"""Bytes of a seal."""

_PASSING = ("locked", "busy", "full", "readonly", "disk I/O", "unable to open", "interrupted")
"""Error messages of sqlite after which the file may still be intact."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (kind TEXT, key TEXT, used INTEGER, value BLOB, PRIMARY KEY (kind, key))"
"""It has row ids: a table without them moves its large values whenever a key comes between others."""


def cache_folder() -> Path:
    """``$OPSCHEMA_CACHE_DIR``, else the platform's cache folder."""
    configured = os.environ.get("OPSCHEMA_CACHE_DIR")
    if configured:
        return Path(configured)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "opschema"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "opschema"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opschema"


def key_file() -> Path:
    """The file of the key by which the user's opschema recognises its own writing.

    Raises:
        RuntimeError: the user has no home.
    """
    return cache_folder() / KEY_NAME


class Cache:
    """Reads and writes entries of one workspace; every failure reads as a miss."""

    def __init__(self, path: Path | None, key: bytes | None = None) -> None:
        self._db: sqlite3.Connection | None = None
        self._path = path
        self.empty = path is None or not path.exists()
        """Whether no run has left anything here."""
        self._key = key
        if path is not None:
            self._key = key or user_key(path.with_name(KEY_NAME))
            self._sealing = hashlib.blake2b(key=self._key, digest_size=_SEAL, person=b"cache")
            with self._survive():
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._db = _connect(path)
                weakref.finalize(self, self._db.close)

    @classmethod
    def for_workspace(cls, root: Path) -> Cache:
        """Return the cache of the workspace at ``root``; one that stores nothing if no folder is writable."""
        try:
            key = user_key(key_file())
        except RuntimeError:  # the user has no home
            return cls(None)
        # Nobody without the key knows the name, so nobody else's file is opened.
        name = hashlib.blake2b(os.fsencode(root), key=key, digest_size=10, person=b"workspace").hexdigest()
        return cls(cache_folder() / f"{name}.sqlite", key)

    def reopened(self) -> Cache:
        """Return the same file, opened again: a forked process must not use a connection of its parent."""
        return Cache(self._path, self._key)

    @contextlib.contextmanager
    def _survive(self) -> Iterator[None]:
        """Continue without the cache if it fails; if its file is damaged, the next run creates a new one."""
        try:
            yield
        except OSError:
            self._roll_back()
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in _PASSING):
                self._roll_back()
            else:
                self._discard()

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._db is not None and self._db.in_transaction:
                self._db.rollback()

    def _discard(self) -> None:
        """Remove the file: it is damaged, or not one of this program."""
        self.close()
        for tail in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                Path(f"{self._path}{tail}").unlink()

    def _seal(self, kind: str, key: str, value: bytes) -> bytes:
        digest = self._sealing.copy()
        digest.update(f"{kind}\0{key}\0".encode("utf-8", "surrogatepass"))
        digest.update(value)
        return digest.digest()

    def _opened(self, kind: str, key: object, stored: object) -> bytes | None:
        """Return the value after its seal; None if the seal does not match."""
        if not isinstance(key, str) or not isinstance(stored, bytes):
            return None
        value = stored[_SEAL:]
        return value if self._seal(kind, key, value) == stored[:_SEAL] else None

    def get(self, kind: str, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the stored values among ``keys`` whose seals match."""
        db = self._db
        if db is None:
            return {}
        wanted = list(dict.fromkeys(keys))
        found: dict[str, bytes] = {}
        aging: list[str] = []
        today = _today()
        with self._survive():
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, value, used FROM entries WHERE kind = ? AND key IN ({marks})"
                for key, stored, used in db.execute(query, (kind, *part)):
                    value = self._opened(kind, key, stored)
                    if value is not None:
                        found[key] = value
                        if not isinstance(used, int) or used < today:
                            aging.append(key)
        if aging:
            self._touch(kind, aging, today)
        return found

    def stored(self, kind: str, keys: Iterable[str]) -> set[str]:
        """Return those of ``keys`` that have a value, without checking its seal."""
        db = self._db
        if db is None:
            return set()
        wanted = list(dict.fromkeys(keys))
        found: set[str] = set()
        with self._survive():
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                query = f"SELECT key FROM entries WHERE kind = ? AND key IN ({','.join('?' * len(part))})"
                found.update(key for (key,) in db.execute(query, (kind, *part)))
        return found

    def put(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values, and replace existing ones."""
        if self._db is None or not values:
            return
        today = _today()
        # Made one by one: together they would be a second copy of all values.
        rows = ((kind, key, today, self._seal(kind, key, value) + value) for key, value in values.items())
        self._write([("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)])

    def _touch(self, kind: str, keys: Iterable[str], today: int) -> None:
        """Mark entries as used, at most once a day each, and remove those unused for long."""
        rows = [(today, kind, key) for key in keys]
        mark = ("UPDATE entries SET used = ? WHERE kind = ? AND key = ?", rows)
        self._write([mark, ("DELETE FROM entries WHERE used < ?", [(today - MAX_AGE_DAYS,)])])

    def _write(self, statements: Iterable[tuple[str, Iterable[tuple[object, ...]]]]) -> None:
        if self._db is None:
            return
        with self._survive():
            self._db.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                self._db.executemany(statement, rows)
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None


def _connect(path: Path) -> sqlite3.Connection:
    # A server uses it in one thread, and may end in another.
    db = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    db.execute(f"PRAGMA page_size={_PAGE}")  # of a file that is begun; values of many pages are read in half the time
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:  # sqlite does not wait for another process that just begins the file
            if "locked" not in str(error) or time.monotonic() > until:
                db.close()
                raise
            time.sleep(0.002)
    db.execute("PRAGMA synchronous=OFF")
    db.execute(_SCHEMA)
    return db


def _today() -> int:
    return int(time.time() // 86400)


def decoded(data: bytes | msgspec.Raw | None, kind: type[T]) -> T | None:
    """A stored value; None if there is none, or it cannot be read."""
    if data is None:
        return None
    try:
        return msgspec.msgpack.decode(data, type=kind)
    # Texts that are not UTF-8 and numbers out of range are plain value errors, and lengths that lie want memory.
    except (msgspec.MsgspecError, ValueError, RecursionError, MemoryError, OverflowError):
        return None

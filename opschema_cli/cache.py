"""A cache of what was derived from file contents, in sqlite, outside the linted tree.

Keys are content hashes, so an entry is never stale, only unused. The cache is an optimisation: whatever
is wrong with its file, the run goes on without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

MAX_AGE_DAYS = 30
"""Entries not read or written for this long are dropped."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (kind TEXT, key TEXT, used INTEGER, value BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID"


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


class Cache:
    """Reads and writes entries of one workspace; every failure reads as a miss."""

    def __init__(self, path: Path | None) -> None:
        self._db: sqlite3.Connection | None = None
        if path is not None:
            self._open(path)

    @classmethod
    def for_workspace(cls, root: Path) -> Cache:
        """The cache of the workspace at ``root``; one that keeps nothing where no folder can be written."""
        name = hashlib.blake2b(os.fsencode(root), digest_size=10).hexdigest()
        return cls(cache_folder() / f"{name}.sqlite")

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = self._connect(path)
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError, sqlite3.Error):
                path.unlink()
                self._db = self._connect(path)
        except (OSError, sqlite3.Error):
            self._db = None

    def _connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=2, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=OFF")
        db.execute(_SCHEMA)
        return db

    def get(self, kind: str, keys: Iterable[str]) -> dict[str, bytes]:
        """The stored values among ``keys``."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, bytes] = {}
        if self._db is None:
            return found
        with contextlib.suppress(sqlite3.Error):
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, value FROM entries WHERE kind = ? AND key IN ({marks})"
                found.update(self._db.execute(query, (kind, *part)))
        return found

    def put(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values; replaces what is there."""
        if self._db is None or not values:
            return
        today = int(time.time() // 86400)
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("BEGIN IMMEDIATE")
            rows = ((kind, key, today, value) for key, value in values.items())
            self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)
            self._db.execute("COMMIT")

    def touch(self, kind: str, keys: Iterable[str]) -> None:
        """Mark entries as used, at most once a day each, and drop those that nothing used for long."""
        if self._db is None:
            return
        today = int(time.time() // 86400)
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("BEGIN IMMEDIATE")
            rows = ((today, kind, key, today) for key in keys)
            self._db.executemany("UPDATE entries SET used = ? WHERE kind = ? AND key = ? AND used < ?", rows)
            self._db.execute("DELETE FROM entries WHERE used < ?", (today - MAX_AGE_DAYS,))
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

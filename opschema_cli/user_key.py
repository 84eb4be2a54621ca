"""The key that authenticates files written by opschema; see :mod:`opschema_cli.private` for when it is valid."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from opschema_cli.private import read_private, write_private

KEY_BYTES = 32


def user_key(path: Path) -> bytes:
    """Return the key in a file, which is created if missing. If no file can be stored, return a key for this call only."""
    key = _stored(path)
    if key is None:
        with contextlib.suppress(OSError):
            write_private(path, os.urandom(KEY_BYTES), lambda path: _stored(path) is not None)
            key = _stored(path)
    return key or os.urandom(KEY_BYTES)


def _stored(path: Path) -> bytes | None:
    key = read_private(path, KEY_BYTES)
    return key if key is not None and len(key) == KEY_BYTES else None

"""Secret keys of the user, by which opschema recognises what it has written itself.

A key counts only if it belongs to this user and nobody else may read or write it. Git records no such mode, so a checkout
cannot bring a key, even where the cache folder was put into the tree; nor can another user who writes to the folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

KEY_BYTES = 32


def user_key(path: Path) -> bytes:
    """The key in a file, which is made if there is none; one for this call alone where no file can be kept."""
    key = _stored(path)
    if key is None:
        with contextlib.suppress(OSError):
            _store(path, os.urandom(KEY_BYTES))
            key = _stored(path)
    return key or os.urandom(KEY_BYTES)


def _stored(path: Path) -> bytes | None:
    """The key in a file; None if that is not a key, or not this user's alone."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        key = os.read(handle, KEY_BYTES + 1) if _is_private(status) else b""
    finally:
        os.close(handle)
    return key if len(key) == KEY_BYTES else None


def _is_private(status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)


def _store(path: Path, key: bytes) -> None:
    # Not at the top: a run that finds a key does without.
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(key)
            stream.flush()
            os.fsync(stream.fileno())
        _publish(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _publish(temporary: str, path: Path) -> None:
    """Give a new key its name, unless another process has just made one."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        if _stored(path) is None:
            os.replace(temporary, path)
    except OSError:  # the disk knows no second names
        os.replace(temporary, path)

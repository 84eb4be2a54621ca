"""Files that count only if they are this user's and nobody else may write or read them: keys and permissions.

Git records no such mode, so a checkout cannot bring one, even where a folder of the user was put into the tree; nor can
another user who writes to the folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path


def read_private(path: Path, limit: int) -> bytes | None:
    """Return the bytes of a private file, or None if it does not exist, others may open it, or it is longer than ``limit``."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        return None
    try:
        found = os.read(handle, limit + 1) if _is_private(os.fstat(handle)) else None
    except OSError:
        found = None
    finally:
        os.close(handle)
    return found if found is not None and len(found) <= limit else None


def _is_private(status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return False
    if sys.platform in ("win32", "emscripten"):  # users and modes mean nothing there
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


def write_private(path: Path, data: bytes, is_sound: Callable[[Path], bool]) -> None:
    """Write a private file, unless another process has just written a valid one.

    Raises:
        OSError: it cannot be written.
    """
    # Not at the top: most runs only read.
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        try:
            os.write(handle, data)  # a few bytes, which are written at once or not at all
            os.fsync(handle)
        finally:
            os.close(handle)
        _publish(temporary, path, is_sound)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _publish(temporary: str, path: Path, is_sound: Callable[[Path], bool]) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        if not is_sound(path):
            os.replace(temporary, path)
    except (OSError, AttributeError):  # the disk, or Python in WebAssembly, knows no second names
        os.replace(temporary, path)

"""The calls that change the disk, with what makes them durable."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from opschema_cli.regular_files import content_digest, read_regular


class Conflict(Exception):  # noqa: N818 - a state of the disk; the caller words the error
    """Files are not as they were, or as they were left."""


def digest_at(path: Path) -> str:
    """Return the digest of a file: empty if it does not exist, and for a link or folder one that no file has."""
    try:
        return content_digest(read_regular(path)) if stat.S_ISREG(os.lstat(path).st_mode) else "?"
    except (FileNotFoundError, NotADirectoryError):
        return ""


def create(path: Path, data: bytes, like: os.stat_result | None) -> None:
    """A new file, complete on disk, with the owner and mode of another."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        if like is not None:
            _dress(path, like)
        append(handle, data)
    finally:
        os.close(handle)


def _dress(path: Path, like: os.stat_result) -> None:
    """Set the owner and mode of another file. Only root can change the owner."""
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(path, like.st_uid, like.st_gid)
    os.chmod(path, like.st_mode & 0o7777)


def keep(target: Path, old: Path, data: bytes, like: os.stat_result | None) -> None:
    """The old file under a second name; a copy where the disk knows no second names."""
    try:
        os.link(target, old)
    except OSError:
        create(old, data, like)


def append(handle: int, data: bytes) -> None:
    """Append bytes and flush them to disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def sync_folders(folders: Iterable[Path]) -> None:
    """See the names in the folders to the disk; where a system cannot open folders, it does so itself."""
    if sys.platform == "win32":
        return
    for folder in dict.fromkeys(folders):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

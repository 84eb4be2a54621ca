"""Bytes of regular files, and the state by which a change is recognised."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TypeAlias

MAX_FILE_BYTES = 16 * 2**20
"""Larger files are reported, not read; native_functions.yaml has 0.6 MiB."""

State: TypeAlias = tuple[int, int, int, int, int]
"""A file's times of modification and change (nanoseconds), size, inode and device: they show a change without reading it."""


def state_of(status: os.stat_result) -> State:
    """The state of a file."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def read_regular(path: Path | str, limit: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a regular file; never waits for a pipe or a device.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than ``limit``.
    """
    return read_with_state(path, limit)[0]


def read_with_state(path: Path | str, limit: int) -> tuple[bytes, State]:
    """Read a file, and also return its state after reading. The state differs from the state before if the file was changed
    meanwhile.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if status.st_size > limit:
            raise OSError(f"it has {status.st_size:,} bytes; opschema reads up to {limit:,}")
        found = os.read(descriptor, status.st_size + 1)
        # Not all came at once, or the file grows.
        while len(found) != status.st_size and (more := os.read(descriptor, 65536)):
            found += more
        return found, state_of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def content_digest(data: bytes) -> str:
    """The digest of bytes, under which values derived from them are cached."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()

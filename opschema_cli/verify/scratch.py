"""Temporary folders that end with their process, or with a later one if that was killed.

A folder is locked while its process lives. So a later run can tell which folders are left over, in other containers that share
the place, too.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "opschema-scratch-"
_UNLOCKED = "opschema-new-"
_LOCK = ".lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder; those that killed runs of this user have left are removed."""
    if sys.platform == "win32":
        with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
            yield Path(folder).resolve()
        return
    made = Path(tempfile.mkdtemp(prefix=_UNLOCKED)).resolve()
    lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = made.rename(made.with_name(made.name.replace(_UNLOCKED, PREFIX)))
        remove_left_over(made.parent)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def remove_left_over(place: Path) -> None:
    """Remove this user's folders whose process has ended."""
    if sys.platform == "win32":
        return
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another run removes it, or it is none of ours
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)

"""Whether a file may be replaced, according to its mode and owner; even for privileged users."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def check_replaceable(target: Path) -> None:
    """Check that a file that is there may be written, and that its folder may.

    A new file takes the place of the old one, for which the system asks only the folder, and root nothing at all. What is
    marked read-only is left alone by root, too.

    Raises:
        OSError: one of them is marked read-only, or the file may not be written or belongs to another user, to whom its
            replacement could not be given.
    """
    status = os.stat(target)
    if not status.st_mode & stat.S_IWUSR:
        raise PermissionError(f"{target} is marked read-only; make it writable first (`chmod u+w`)")
    if hasattr(os, "geteuid") and os.geteuid() not in (0, status.st_uid):
        raise PermissionError(f"{target} belongs to another user, to whom its replacement could not be given")
    os.close(os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))  # flags of the file and the file system
    check_folder(target.parent)


def check_folder(folder: Path) -> None:
    """Check that files may be added to a folder, or to the one in which it would be made.

    Raises:
        OSError: that is marked read-only.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if os.name == "posix" and not os.stat(there).st_mode & stat.S_IWUSR:
        raise PermissionError(f"the folder {there} is marked read-only; make it writable first (`chmod u+w`)")

"""Resolves links in the paths of a workspace."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class Links:
    """The links below a root; each folder's are resolved once. ``names`` are the names on disk of listed paths."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.names: dict[str, str] = {}
        self._folders: dict[str, tuple[str, bool]] = {}

    def target(self, path: str) -> str | None:
        """Return the file that ``path`` leads to; None if it is outside the root, or cannot be resolved."""
        name = self.names.get(path, path).rpartition("/")[2]
        try:
            real, is_inside = self.folder_of(path)
            target = real + name
            if name in ("", ".", "..") or _is_link(target):
                target = os.path.realpath(target)
                is_inside = self._holds(target)
        except (OSError, ValueError, RuntimeError):
            return None
        return target if is_inside else None

    def folder_of(self, path: str) -> tuple[str, bool]:
        """The folder that a path leads to, with a separator at its end, and whether it is inside the root.

        Raises:
            OSError, ValueError, RuntimeError: it cannot be followed.
        """
        folder = self.names.get(path, path).rpartition("/")[0]
        if folder not in self._folders:
            real = os.path.realpath(os.path.join(self._root, folder))
            self._folders[folder] = real.rstrip(os.sep) + os.sep, self._holds(real)
        return self._folders[folder]

    def _holds(self, target: str) -> bool:
        """Whether a path without links is the root, or is below it."""
        return target == self._root or target.startswith(self._root.rstrip(os.sep) + os.sep)


def _is_link(path: str) -> bool:
    """Whether a path names a link.

    Raises:
        ValueError: it is not a path at all.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False

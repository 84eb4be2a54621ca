"""A workspace at a revision: the files of a commit, read from git's object store, with the configuration of the tree."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from opschema_cli.git_objects import ObjectReader, TreeEntry, tree_of
from opschema_cli.regular_files import MAX_FILE_BYTES, State
from opschema_cli.workspace import ReadError, Workspace, shown_name

MAX_LINKS = 20
"""Symbolic links that are followed for one path."""

LONGEST_TARGET = 4_096
"""Bytes of the longest target of a link."""


class RevisionWorkspace(Workspace):
    """The files of a commit below ``root``. Links are followed within the commit, but not out of it.

    Raises:
        OpschemaError: the commit's files cannot be listed, or ``exclude`` holds a malformed pattern.
    """

    def __init__(self, root: Path, commit: str, exclude: Iterable[str] = ()) -> None:
        super().__init__(root, exclude=exclude)
        self.commit = commit
        self._objects = ObjectReader(self.root)
        self._tree: dict[str, TreeEntry] = {}
        for name, entry in tree_of(self.root, commit).items():
            self._tree[shown_name(name)] = entry

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files of the commit that are not excluded, sorted; links to files among them."""
        kept = (path for path in self._tree if self._excluded is None or not self._excluded.ignores(path))
        return tuple(sorted(path for path in kept if self._entry(path) is not None))

    def list_ahead(self) -> None:
        """Do nothing: the files are known."""

    def close(self) -> None:
        """End the process that reads objects."""
        self._objects.close()

    def is_file(self, path: str) -> bool:
        """Whether ``path`` names a file of the commit, or one outside the root that may be read."""
        if path in self.provided or self._entry(path) is not None:
            return True
        return path in self.admitted and os.path.isfile(path)

    def submodule_pin(self, path: str) -> str | None:
        """The commit at which the commit pins the submodule at ``path``."""
        entry = self._tree.get(path)
        self.pins[path] = entry.oid if entry is not None and entry.is_submodule else None
        return self.pins[path]

    def _entry(self, path: str) -> TreeEntry | None:
        """Return the regular file at a path, or None if there is none, or it is outside the root."""
        for _ in range(MAX_LINKS):
            entry = self._tree.get(path)
            if entry is None:
                followed = self._through_folder(path)
            elif entry.is_link:
                followed = self._target(path, entry)
            else:
                return None if entry.is_submodule else entry
            if followed is None:
                return None
            path = followed
        return None

    def _through_folder(self, path: str) -> str | None:
        """Return the path after its first linked folder is resolved, or None if no folder of it is a link."""
        parts = path.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            entry = self._tree.get(folder)
            if entry is not None:
                target = self._target(folder, entry) if entry.is_link else None
                return None if target is None else posixpath.join(target, *parts[end:])
        return None

    def _target(self, path: str, entry: TreeEntry) -> str | None:
        """The path that a link leads to, relative to the root; None if that is outside, or not known."""
        if entry.size is None or entry.size > LONGEST_TARGET:
            return None
        data = self._objects.read(entry.oid)
        if data is None or data.startswith(b"/"):
            return None
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), shown_name(os.fsdecode(data))))
        return None if target.startswith("../") or target in ("..", ".") else target

    def _read(self, path: str) -> tuple[bytes, State]:
        if path in self.admitted:
            return super()._read(path)
        entry = self._entry(path)
        if entry is None:
            is_known = path in self._tree
            raise ReadError(path, "it leads to no file of the revision" if is_known else "it does not exist")
        if entry.size is not None and entry.size > MAX_FILE_BYTES:
            raise ReadError(path, f"it has {entry.size:,} bytes; opschema reads up to {MAX_FILE_BYTES:,}")
        data = self._objects.read(entry.oid) if entry.size is not None else None
        if data is None:
            raise ReadError(
                path, "its object is missing or damaged: the clone is partial, or its object store is broken"
            )
        return data, (0, 0, len(data), 0, 0)

    def _state(self, path: str) -> State | None:
        """Return None, because a file of a commit does not change and is never read from disk."""
        return None

"""The trees that are compared: an unchanged folder, an exported git revision, a draft written out; as long as their contexts."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opschema_cli.errors import OpschemaError
from opschema_cli.file_listing import in_git
from opschema_cli.git import archive, commit_held, is_repository, pinned_submodules
from opschema_cli.git_objects import find_commit
from opschema_cli.verify.results import Version
from opschema_cli.verify.scratch import scratch_folder
from opschema_cli.workspace import Workspace

if TYPE_CHECKING or sys.version_info >= (3, 11, 4):
    import tarfile
else:  # filters came with releases of 2023
    from backports import tarfile

LEFT_OUT = (".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".tox", ".mypy_cache", ".pytest_cache")
"""Folders that no copy of a tree has."""
_OUTPUTS = (".jsonl", ".log", ".out", ".err", ".xml", ".html", ".opschema-run")
"""Files that runs and batch systems write beside the tree, and that do not change its identity."""


@contextmanager
def tree_of(root: Path, what: str) -> Iterator[tuple[Path, Version]]:
    """The tree that ``--before`` names: a folder, else a revision of the repository that ``root`` lies in.

    Files that git does not track are in none of its revisions, built extensions among them. Submodules are there at their
    pins, as far as they are checked out here and have the commit.

    Raises:
        OpschemaError: it is neither.
    """
    if what and Path(what).is_dir():
        yield Path(what).resolve(), version_of(Path(what).resolve(), what)
        return
    with scratch_folder() as folder:
        packed = folder / "revision.tar"
        try:
            commit = archive(root, find_commit(root, what) if in_git(root) else what, packed)
        except OpschemaError as error:
            raise OpschemaError(f"{what!r} is neither a folder nor a revision that git can export: {error}") from None
        tree = folder / root.resolve().name
        tree.mkdir()
        unpack(packed, tree)
        _export_submodules(root, commit, tree, packed)
        yield tree, Version(name=what, commit=commit)


def version_of(root: Path, name: str) -> Version:
    """The identity of a folder's files: their commit, else a digest of their content.

    Files that git ignores are in neither, so that what was built on two machines does not make them differ.
    """
    try:
        commit = commit_held(root, _is_output)
    except OpschemaError:  # a work tree without its repository, or one of someone else
        commit = ""
    return Version(name=name, commit=commit) if commit else Version(name=name, content=_content(root))


def _is_output(path: str) -> bool:
    return path.endswith(_OUTPUTS) or not {"__pycache__", ".git"}.isdisjoint(path.split("/"))


def _content(root: Path) -> str:
    workspace = Workspace(root)
    digest = hashlib.blake2b(digest_size=20)
    for path in workspace.files:
        if not _is_output(path):
            digest.update(f"{path}\0{_digest(workspace, path)}\0".encode())
    return digest.hexdigest()


def _digest(workspace: Workspace, path: str) -> str:
    """Return a file's digest, or an empty text if the file cannot be read or is outside the folder."""
    digest = hashlib.blake2b(digest_size=20)
    try:
        with workspace.locate(path).open("rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
    except (OpschemaError, OSError):
        return ""
    return digest.hexdigest()


@contextmanager
def draft_of(workspace: Workspace) -> Iterator[Path]:
    """A copy of the workspace as its overlay would have it, with files that git ignores, for an op may need them."""
    with scratch_folder() as folder:
        tree = folder / workspace.root.name
        shutil.copytree(workspace.root, tree, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for path, text in workspace.overlay.items():
            target = _inside(tree, path)
            target.unlink(missing_ok=True)
            if text is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(workspace.data(path))
        yield tree


def unpack(packed: Path, tree: Path) -> None:
    """Unpack a tree, except for members that would end up outside ``tree``: links that lead outside, and devices."""
    with tarfile.open(packed) as members:
        members.extractall(tree, filter=_harmless)


def _harmless(member: tarfile.TarInfo, tree: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, tree)
    except tarfile.FilterError:
        return None


def _export_submodules(root: Path, commit: str, tree: Path, packed: Path) -> None:
    """Export the submodules of an exported commit, and theirs."""
    for path, pin in pinned_submodules(root, commit):
        source = _inside(root.resolve(), path)
        if not is_repository(source) or source.is_symlink():
            continue
        try:
            archive(source, pin, packed)
        except OpschemaError:  # it was not fetched; whoever needs it fails to import it
            continue
        place = _inside(tree, path)
        place.mkdir(parents=True, exist_ok=True)
        unpack(packed, place)
        _export_submodules(source, pin, place, packed)


def _inside(tree: Path, path: str) -> Path:
    """Return the location of a path in a tree, but never through a link out of it.

    Raises:
        OpschemaError: it leads out.
    """
    target = tree / path
    parent = os.path.realpath(target.parent)
    if parent != str(tree) and not parent.startswith(f"{tree}{os.sep}"):
        raise OpschemaError(f"{path} leads out of the workspace")
    return target

"""The trees that are compared: a folder as it is, a git revision exported, a draft written out; as long as their contexts."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.git import archive
from opschema_cli.workspace import Workspace

_LEFT_OUT = (".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".tox", ".mypy_cache", ".pytest_cache")


@contextmanager
def tree_of(root: Path, what: str) -> Iterator[Path]:
    """The tree that ``--before`` names: a folder, else a revision of the repository that ``root`` lies in.

    Files that git does not track are in none of its revisions, built extensions among them.

    Raises:
        OpschemaError: it is neither.
    """
    if what and Path(what).is_dir():
        yield Path(what).resolve()
        return
    with _scratch() as folder:
        packed = folder / "revision.tar"
        try:
            archive(root, what, packed)
        except OpschemaError as error:
            raise OpschemaError(f"{what!r} is no folder, and no revision that git can export: {error}") from None
        tree = folder / root.resolve().name
        tree.mkdir()
        _extract(packed, tree)
        packed.unlink()
        yield tree


@contextmanager
def draft_of(workspace: Workspace) -> Iterator[Path]:
    """A copy of the workspace as its overlay would have it, with files that git ignores, for an op may need them."""
    with _scratch() as folder:
        tree = folder / workspace.root.name
        shutil.copytree(workspace.root, tree, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for path, text in workspace.overlay.items():
            target = _inside(tree, path)
            target.unlink(missing_ok=True)
            if text is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(workspace.data(path))
        yield tree


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="opschema-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def _extract(packed: Path, tree: Path) -> None:
    """Unpack all but what would lead out of ``tree``: links that do, devices.

    Raises:
        OpschemaError: this Python cannot tell.
    """
    if not hasattr(tarfile, "data_filter"):
        raise OpschemaError("this release of Python cannot unpack a revision safely; update it, or name a folder")
    with tarfile.open(packed) as members:
        members.extractall(tree, filter=_harmless)


def _harmless(member: tarfile.TarInfo, tree: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, tree)
    except tarfile.FilterError:
        return None


def _inside(tree: Path, path: str) -> Path:
    """Where a path of the workspace lies in its copy; never through a link out of it.

    Raises:
        OpschemaError: it leads out.
    """
    target = tree / path
    parent = os.path.realpath(target.parent)
    if parent != str(tree) and not parent.startswith(f"{tree}{os.sep}"):
        raise OpschemaError(f"{path} leads out of the workspace")
    return target

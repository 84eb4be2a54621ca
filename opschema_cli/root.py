"""The root of a workspace, and links that lead outside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import read_regular


def find_root(start: Path) -> Path:
    """The workspace that ``start`` lies in: the nearest folder with opschema's configuration or a ``.git``,
    else the nearest one with a pyproject.toml, else ``start`` itself.
    """
    folder = start if start.is_dir() else start.parent
    folder = folder.resolve()
    lineage = (folder, *folder.parents)
    for parent in lineage:
        own = parent / "opschema.toml"
        if own.is_file() or own.is_symlink() or _configured(parent / "pyproject.toml"):
            return parent
        if (parent / ".git").exists():
            return parent
    return next((parent for parent in lineage if (parent / "pyproject.toml").is_file()), folder)


def leads_out(path: Path, root: Path) -> bool:
    """Whether a path is a link to something outside of a folder."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def check_output(path: Path, root: Path) -> None:
    """Check that no link of a tree leads a report that is written there to another place: the tree may have put it there.

    Raises:
        OpschemaError: one does.
    """
    absolute = path.absolute()
    for part in (absolute, *absolute.parents):
        if leads_out(part, root) and Path(os.path.realpath(part.parent)).is_relative_to(root):
            raise OpschemaError(f"{path} is not written: {part} is a link that leads out of {root}; remove the link")


def _configured(pyproject: Path) -> bool:
    if leads_out(pyproject, pyproject.parent):
        return False
    try:
        return re.search(rb"(?m)^[ \t]*\[tool\.opschema[\].]", read_regular(pyproject)) is not None
    except OSError:
        return False

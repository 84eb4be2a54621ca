"""Writes many files as one step: all of them, or none.

New texts go to temporary files beside their targets first, so that what can fail fails before the first rename.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.workspace import Workspace, content_digest, read_regular


def write_all(workspace: Workspace, texts: Mapping[str, str]) -> None:
    """Replace the files' texts, keeping their encodings, owners and modes.

    Raises:
        OpschemaError: a file changed on disk since it was read, leads out of the workspace, cannot hold the text in its
            encoding, or cannot be written; then no file was changed.
    """
    staged: list[tuple[str, Path]] = []
    try:
        for path, text in sorted(texts.items()):
            target = workspace.locate(path)
            _check_unchanged(workspace, path, target)
            staged.append((_stage(target, _encoded(workspace, path, text)), target))
        for temporary, target in staged:
            os.replace(temporary, target)
    except OSError as error:
        raise OpschemaError(f"nothing was written: {error}") from None
    finally:
        for temporary, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _check_unchanged(workspace: Workspace, path: str, target: Path) -> None:
    if content_digest(read_regular(target)) != workspace.source(path).digest:
        raise OpschemaError(f"nothing was written: {path} changed on disk since it was read")


def _encoded(workspace: Workspace, path: str, text: str) -> bytes:
    source = workspace.source(path)
    try:
        return source.encode(text)
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise OpschemaError(f"nothing was written: {path} is {source.encoding}, which has no {character!r}") from None


def _stage(target: Path, data: bytes) -> str:
    """A finished file beside ``target``, ready to take its place."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".opschema")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        status = target.stat()
        if hasattr(os, "chown"):
            with contextlib.suppress(PermissionError):
                os.chown(temporary, status.st_uid, status.st_gid)
        os.chmod(temporary, status.st_mode & 0o7777)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary

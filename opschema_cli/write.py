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
from opschema_cli.workspace import Workspace, content_digest


def write_all(workspace: Workspace, texts: Mapping[str, str]) -> None:
    """Replace the files' texts, keeping their encodings and modes.

    Raises:
        OpschemaError: a file changed on disk since it was read, leads out of the workspace, or cannot be written;
            then no file was changed.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, text in sorted(texts.items()):
            staged.append(_stage(workspace, path, text))
        for temporary, target in staged:
            os.replace(temporary, target)
    except OSError as error:
        raise OpschemaError(f"nothing was written: {error}") from None
    finally:
        for temporary, _ in staged:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _stage(workspace: Workspace, path: str, text: str) -> tuple[Path, Path]:
    source = workspace.source(path)
    target = (workspace.root / path).resolve()
    if workspace.root not in target.parents:
        raise OpschemaError(f"nothing was written: {path} is a link that leaves the workspace")
    if content_digest(target.read_bytes()) != source.digest:
        raise OpschemaError(f"nothing was written: {path} changed on disk since it was read")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".opschema")
    with os.fdopen(handle, "wb") as stream:
        stream.write(source.encode(text))
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(name, target.stat().st_mode & 0o7777)
    return Path(name), target

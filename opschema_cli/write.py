"""Writes the texts of fixes and migrations: all files as one step, in their own encodings, with their owners and modes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.interrupts import check_interrupted
from opschema_cli.read_only import check_folder, check_replaceable
from opschema_cli.regular_files import content_digest, read_regular
from opschema_cli.source.text import DecodeError, decode
from opschema_cli.transaction.apply import write_files
from opschema_cli.transaction.disk import Conflict
from opschema_cli.transaction.steps import Write
from opschema_cli.workspace import ReadError, Workspace


def write_all(workspace: Workspace, texts: Mapping[str, str | None], origins: Mapping[str, str] | None = None) -> None:
    """Replace, add and remove files (None); ``origins`` says which file a new one was, whose encoding and mode it gets.

    Raises:
        OpschemaError: a file changed on disk since it was read, leads out of the workspace, cannot hold the text in its
            encoding, or cannot be written; then no file was changed.
        KeyboardInterrupt: ^C has come.
    """
    check_interrupted()
    try:
        writes: dict[Path, Write] = {}
        for path, text in sorted(texts.items()):
            write = _write(workspace, path, text, (origins or {}).get(path, path))
            if writes.setdefault(write.target, write).after != write.after:
                raise Conflict(f"{path} is a second name of another file, which gets another text")
        changing = [write for write in writes.values() if write.after != write.before]
        if changing:
            check_folder(workspace.root)  # where the journal will lie
            write_files(workspace.root, changing)
    except (OSError, Conflict) as error:
        raise OpschemaError(f"nothing was written: {error}") from None


def _write(workspace: Workspace, path: str, text: str | None, origin: str) -> Write:
    target = workspace.locate(path)
    before = _before(workspace, path, target)
    if text is None and (workspace.root / path).is_symlink():
        raise Conflict(f"{path} is a link; remove it by hand")
    like = workspace.locate(origin).stat() if text is not None and (before is not None or origin != path) else None
    return Write(target, before, None if text is None else _encoded(workspace, origin, path, text), like)


def _before(workspace: Workspace, path: str, target: Path) -> bytes | None:
    """Return the bytes on disk, which must be those that were read, or None for a new file."""
    try:
        digest = workspace.source(path).digest
    except ReadError:
        if os.path.lexists(target):
            raise Conflict(f"{path} is there already") from None
        check_folder(target.parent)
        return None
    found = read_regular(target)
    if content_digest(found) != digest:
        raise Conflict(f"{path} changed on disk since it was read")
    check_replaceable(target)
    return found


def _encoded(workspace: Workspace, origin: str, path: str, text: str) -> bytes:
    encoding = workspace.encoding(origin, text)
    try:
        data = text.encode(encoding)
        if decode(data, python=is_python(path)) == (text, encoding):
            return data
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise Conflict(f"{path} is {encoding}, which has no {character!r}") from None
    except (DecodeError, LookupError):
        pass
    raise Conflict(f"{path} could not be read again as {encoding}")

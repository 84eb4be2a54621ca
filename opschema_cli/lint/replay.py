"""Answers a run over an unchanged workspace from the last one's result.

A run depends on the settings, opschema's own code, the list of files, the bytes of every file it read, the variables of the
environment and the pins of submodules it asked for. If all of these are as they were, so is its result.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from opschema_cli import __version__
from opschema_cli.cache import Cache, decoded
from opschema_cli.lint.diagnostic import Diagnostic, NotChecked, NotUnderstood, Unread
from opschema_cli.lint.not_checked import still_missing
from opschema_cli.lint.runner import Outcome
from opschema_cli.workspace import Asked, Workspace

_KIND = "run"


class StaleRun(msgspec.Struct):
    """The last run, if some files have ``changed`` since, with the ``packs`` that found something then."""

    changed: list[str]
    packs: list[str]


class _Stored(msgspec.Struct, array_like=True):
    asked: Asked
    diagnostics: list[Diagnostic]
    suppressed: int
    baselined: int
    ops: int
    files: int
    packs: list[str]
    nothing: bool
    unread: list[Unread]
    not_checked: list[NotChecked]
    judged: frozenset[str]
    unresolved: list[NotUnderstood]
    partly: int

    @property
    def outcome(self) -> Outcome:
        """The outcome of the run."""
        shared = {name: getattr(self, name) for name in self.__struct_fields__ if name != "asked"}
        return Outcome(**shared)


def code_stamp(code: Iterable[Path], plugins: Iterable[str] = ()) -> str:
    """Return a digest of the code that decides findings: versions, the running Python installation, the files below ``code`` by
    size and time, and the digests of ``plugins``.
    """
    digest = hashlib.blake2b(f"{__version__} {sys.version} {sys.prefix} ".encode(), digest_size=16)
    for plugin in plugins:
        digest.update(f"{plugin}\n".encode())
    for path in code:
        for file in sorted(_files(path), key=os.fspath) if path.is_dir() else [path]:
            with suppress(OSError):  # a link that leads nowhere, as editors make them
                state = file.stat()
                digest.update(
                    f"{os.fspath(file)} {state.st_size} {state.st_mtime_ns}\n".encode("utf-8", "surrogatepass")
                )
    return digest.hexdigest()


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files of code below a folder, like :meth:`Path.rglob` but in a fifth of its time."""
    with suppress(OSError), os.scandir(folder) as entries:  # one that may not be read, or is gone
        for entry in entries:
            if entry.name.endswith((".py", ".json", ".json.z")):
                yield entry
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _files(entry.path)


def run_key(workspace: Workspace, settings: bytes, stamp: str) -> str:
    """The key of a run: settings, the stamp of opschema's code, and the list of files."""
    digest = hashlib.blake2b(stamp.encode(), digest_size=16)
    digest.update(settings)
    digest.update("\0".join(workspace.files).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def recall(cache: Cache, key: str, workspace: Workspace) -> Outcome | StaleRun | None:
    """Return the stored outcome under ``key`` if every file that the run read is unchanged; otherwise the changes. None if there
    is none, or more than files has changed.
    """
    stored = decoded(cache.get(_KIND, [key]).get(key), _Stored)
    changed = workspace.ask_again(stored.asked) if stored is not None else None
    if stored is None or changed is None:
        return None
    if changed or not all(map(still_missing, stored.not_checked)):
        return StaleRun(changed, stored.packs)
    return stored.outcome


def remember(cache: Cache, key: str, workspace: Workspace, outcome: Outcome) -> None:
    """Store an outcome, unless a rule failed."""
    if not outcome.crashed:
        shared = {name: getattr(outcome, name) for name in _Stored.__struct_fields__ if name != "asked"}
        stored = _Stored(workspace.asked, **shared)
        cache.put(_KIND, {key: msgspec.msgpack.encode(stored)})

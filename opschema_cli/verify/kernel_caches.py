"""Compiler caches that are kept across runs, by side and content of its tree, so that no side uses another side's cached code.

Their place is ``verify`` in opschema's cache folder. A tree that is neither a commit nor a folder of files has none.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

import msgspec

from opschema_cli.cache import MAX_AGE_DAYS, cache_folder
from opschema_cli.verify.child_processes import open_files
from opschema_cli.verify.model import Side
from opschema_cli.verify.results import Version
from opschema_cli.verify.run import Run

_VARIABLES = (
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "NVCC",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "TORCH_CUDA_ARCH_LIST",
)
"""Environment variables that affect compilation and that the cache key of an op library may omit."""

_LOCK = "in-use"
_LOCKS = "extensions/**/lock"


def caches_folder() -> Path:
    """The folder of all kept caches."""
    return cache_folder() / "verify"


def clear_caches() -> None:
    """Remove all kept caches."""
    shutil.rmtree(caches_folder(), ignore_errors=True)


def caches_of(run: Run) -> dict[Side, Path]:
    """The folder of each side's caches in a run. A side is left out if its tree has no identity."""
    header = run.header
    trees = {"before": header.before, "after": header.after, "reference": header.after}
    return {
        side: _folder(side, tree, header.device, run.sanitizer or "")  # type: ignore[misc]
        for side, tree in trees.items()
        if tree is not None and tree.key
    }


def caches_of_search(before: Version | None, after: Version, device: str) -> dict[Side, Path]:
    """The folders of caches of a search, on a device by its label: those that runs without a sanitizer use."""
    trees: dict[Side, tuple[str, Version | None]] = {"search": ("after", after), "search-before": ("before", before)}
    return {
        side: _folder(name, tree, device, "") for side, (name, tree) in trees.items() if tree is not None and tree.key
    }


def _folder(side: str, tree: Version, device: str, sanitizer: str) -> Path:
    where = [side, tree.key, device, sanitizer, *_tools()]
    digest = blake2b(msgspec.json.encode(where), digest_size=12).hexdigest()
    return caches_folder() / f"{side}-{digest}"


def remove_abandoned_locks(folder: Path) -> None:
    """Remove the locks that builds in a folder of caches have left when they were killed: no process holds their files open."""
    locks = list(folder.glob(_LOCKS))
    if locks and sys.platform == "linux":
        held = open_files()
        for lock in locks:
            if os.path.realpath(lock) not in held:
                lock.unlink(missing_ok=True)


def _tools() -> list[str]:
    """The versions and settings that compiled code depends on."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = ""
    return [sys.version, torch, *(os.environ.get(name, "") for name in _VARIABLES)]


class CachesInUse:
    """The caches of one process's part of a run, marked as used until :meth:`close`. ``folders`` are those that can be used."""

    def __init__(self, wanted: dict[Side, Path]) -> None:
        self._marks: list[IO[bytes]] = []
        self.folders: dict[Side, Path] = {}
        for side, folder in wanted.items():
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                self._marks.append(_marked(folder))
                self.folders[side] = folder
        _remove_old()

    def close(self) -> None:
        """Give them up."""
        for mark in self._marks:
            mark.close()
        self._marks.clear()


def _marked(folder: Path) -> IO[bytes]:
    """A file that is locked while its folder is used. Whoever is alone there removes the locks that killed builds have left: who
    builds an extension of torch would wait for them for ever.

    Raises:
        OSError: it cannot be written.
    """
    mark = (folder / _LOCK).open("wb")
    mark.write(b"%d\n" % time.time())
    mark.flush()
    if sys.platform != "win32":
        import fcntl

        with suppress(BlockingIOError):
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lock in folder.glob(_LOCKS):
                lock.unlink()
        fcntl.flock(mark, fcntl.LOCK_SH)
    return mark


def _remove_old() -> None:
    """Remove caches that no run has used for a month."""
    oldest = time.time() - MAX_AGE_DAYS * 86_400
    for mark in caches_folder().glob(f"*/{_LOCK}"):
        with suppress(OSError):
            if mark.stat().st_mtime < oldest:
                shutil.rmtree(mark.parent, ignore_errors=True)

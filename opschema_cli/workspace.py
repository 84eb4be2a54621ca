"""The repository under lint: its root, its files, an overlay of unsaved text. All reading goes through here."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

from opschema_cli.errors import OpschemaError
from opschema_cli.source.text import DecodeError, Source, decode

MAX_FILE_BYTES = 16 * 2**20
"""Larger files are reported, not read; native_functions.yaml has 0.6 MiB."""

_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"})


class ReadError(Exception):
    """A file that cannot be read as text; ``offset`` counts bytes."""

    def __init__(self, path: str, reason: str, offset: int = 0) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.offset = offset


def content_digest(data: bytes) -> str:
    """The key under which what is derived from these bytes is cached."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Workspace:
    """A folder and the files below it that are not ignored.

    Paths are relative to ``root``, with ``/``. ``overlay`` holds texts that replace or add files without
    touching the disk (stdin, drafts of fixes). Links that leave the root are not followed.
    """

    def __init__(self, root: Path, overlay: Mapping[str, str] | None = None, exclude: Iterable[str] = ()) -> None:
        self.root = root.resolve()
        self.overlay = dict(overlay or {})
        self.exclude = tuple(exclude)
        self.probes: dict[str, bool] = {}
        self._sources: dict[str, Source] = {}
        self._data: dict[str, bytes | ReadError] = {}

    @property
    def reads(self) -> dict[str, str]:
        """Every file that was asked for, with the digest of its bytes; empty for one that could not be read."""
        return {path: "" if isinstance(data, ReadError) else content_digest(data) for path, data in self._data.items()}

    def with_overlay(self, overlay: Mapping[str, str]) -> Workspace:
        """The same workspace with these texts on top; what was read stays read."""
        other = Workspace(self.root, {**self.overlay, **overlay}, self.exclude)
        other.__dict__["files"] = tuple(sorted({*self.files, *overlay}))
        other._sources = {path: source for path, source in self._sources.items() if path not in overlay}
        other._data = {path: data for path, data in self._data.items() if path not in overlay}
        return other

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files that are not ignored or excluded, sorted."""
        listed = _git_files(self.root)
        if listed is None:
            listed = _walked_files(self.root)
        kept = listed if not self.exclude else _without(listed, self.exclude)
        return tuple(sorted({*kept, *self.overlay}))

    @cached_property
    def file_set(self) -> frozenset[str]:
        """The same, for membership."""
        return frozenset(self.files)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a listed file; the root is ``.``."""
        found: set[str] = set()
        for path in self.files:
            folder = path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset({*found, "."})

    def is_file(self, path: str) -> bool:
        """Whether ``path`` names a file inside the root, ignored or not."""
        if path in self.file_set:
            return True
        if path not in self.probes:
            target = self._inside(path)
            self.probes[path] = target is not None and target.is_file()
        return self.probes[path]

    def _inside(self, path: str) -> Path | None:
        try:
            target = (self.root / path).resolve()
        except (OSError, ValueError, RuntimeError):
            return None
        return target if target == self.root or self.root in target.parents else None

    def under(self, folder: str, suffix: str = "") -> list[str]:
        """The listed files below ``folder`` (``.`` is the root) whose names end with ``suffix``."""
        prefix = "" if folder in ("", ".") else folder.rstrip("/") + "/"
        return [path for path in self.files if path.startswith(prefix) and path.endswith(suffix)]

    def data(self, path: str) -> bytes:
        """The bytes of a file.

        Raises:
            ReadError: it is missing, unreadable, too large, or leads out of the root.
        """
        if path in self.overlay:
            return self.overlay[path].encode("utf-8", "surrogatepass")
        if path not in self._data:
            try:
                self._data[path] = self._read(path)
            except ReadError as error:
                self._data[path] = error
        found = self._data[path]
        if isinstance(found, ReadError):
            raise found
        return found

    def _read(self, path: str) -> bytes:
        target = self._inside(path)
        if target is None:
            raise ReadError(path, "it leads out of the workspace")
        try:
            if not target.is_file():
                raise ReadError(path, "it is not a regular file" if target.exists() else "it does not exist")
            size = target.stat().st_size
            if size > MAX_FILE_BYTES:
                raise ReadError(path, f"it has {size:,} bytes; opschema reads up to {MAX_FILE_BYTES:,}")
            return target.read_bytes()
        except OSError as error:
            raise ReadError(path, error.strerror or str(error)) from None

    def source(self, path: str) -> Source:
        """A file's text.

        Raises:
            ReadError: see :meth:`data`; or it is not text in its encoding.
        """
        if path not in self._sources:
            data = self.data(path)
            try:
                text, encoding = decode(data, python=path.endswith((".py", ".pyi")))
            except DecodeError as error:
                raise ReadError(path, error.reason, error.offset) from None
            self._sources[path] = Source(path, text, encoding, content_digest(data))
        return self._sources[path]

    def relative(self, path: Path) -> str:
        """``path`` as the workspace names it.

        Raises:
            OpschemaError: it lies outside the root.
        """
        absolute = Path(os.path.abspath(path))
        for candidate in (absolute, absolute.resolve()):
            if candidate == self.root or self.root in candidate.parents:
                return candidate.relative_to(self.root).as_posix()
        raise OpschemaError(f"{path} is outside the workspace {self.root}")


def _git_files(root: Path) -> list[str] | None:
    """Tracked and untracked files that git does not ignore; None without git."""
    if not _in_git(root):
        return None
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
    try:
        run = subprocess.run([*command, "--exclude-standard", "--", "."], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if run.returncode:
        return None
    names = {os.fsdecode(name) for name in run.stdout.split(b"\0") if name}
    return [name for name in names if os.path.isfile(root / name)]


def _in_git(folder: Path) -> bool:
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def _walked_files(root: Path) -> list[str]:
    """All files below ``root`` that its ``.gitignore`` files leave in."""
    import pathspec

    found: list[str] = []
    specs: dict[str, pathspec.GitIgnoreSpec] = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root).as_posix()
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        if ".gitignore" in names:
            text = Path(folder, ".gitignore").read_text(errors="replace")
            specs[here] = pathspec.GitIgnoreSpec.from_lines(text.splitlines())
        for name in names:
            path = name if here == "." else f"{here}/{name}"
            if not _ignored(path, specs):
                found.append(path)
    return found


def _ignored(path: str, specs: Mapping[str, object]) -> bool:
    for folder, spec in specs.items():
        inside = folder == "." or path.startswith(folder + "/")
        tail = path if folder == "." else path[len(folder) + 1 :]
        if inside and spec.match_file(tail):  # type: ignore[attr-defined]
            return True
    return False


def _without(paths: Iterable[str], patterns: Iterable[str]) -> list[str]:
    import pathspec

    spec = pathspec.GitIgnoreSpec.from_lines(patterns)
    return [path for path in paths if not spec.match_file(path)]


def find_root(start: Path) -> Path:
    """The workspace that ``start`` lies in: the nearest folder with opschema's configuration, else the git root,
    else the nearest folder with a pyproject.toml, else ``start`` itself.
    """
    folder = start if start.is_dir() else start.parent
    folder = folder.resolve()
    lineage = (folder, *folder.parents)
    for parent in lineage:
        if (parent / "opschema.toml").is_file() or _configured(parent / "pyproject.toml"):
            return parent
        if (parent / ".git").exists():
            return parent
    return next((parent for parent in lineage if (parent / "pyproject.toml").is_file()), folder)


def _configured(pyproject: Path) -> bool:
    try:
        return b"[tool.opschema" in pyproject.read_bytes()
    except OSError:
        return False


def join(folder: str, relative: str) -> str:
    """``relative`` as seen from ``folder``, normalised; may begin with ``..`` when it leaves the root."""
    parts: list[str] = []
    for part in PurePosixPath("" if folder == "." else folder, relative).parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."

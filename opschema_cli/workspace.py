"""The repository under lint: its root, its files, an overlay of unsaved text. All reading goes through here.

It is one module because it is one class: every way to read a file shares its record of what was asked.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.file_listing import (
    SKIPPED_FOLDERS,
    entries_of,
    git_files,
    in_git,
    ls_files,
    pin_of_submodule,
    pipe_of_git,
    walked_files,
)
from opschema_cli.gitignore import glob_spec
from opschema_cli.links import Links
from opschema_cli.memory import return_free_memory
from opschema_cli.regular_files import MAX_FILE_BYTES, State, content_digest, read_with_state, state_of
from opschema_cli.source.declared_encoding import declared_encoding
from opschema_cli.source.text import DecodeError, Source, decode


class ReadError(Exception):
    """A file that cannot be read as text; ``offset`` counts bytes."""

    def __init__(self, path: str, reason: str, offset: int = 0) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.offset = offset


SETTLED = 2_000_000_000
"""Minimum age of a file in nanoseconds from which any further change is certain to change its state, even with the coarsest
clock.
"""


class Asked(msgspec.Struct, array_like=True):
    """The queries to a workspace and their answers: digests of files, the existence of others, environment variables and pins of
    submodules, and the files outside the root that could be read. ``states`` are the states of those files whose state shows
    that they are unchanged.
    """

    reads: dict[str, str]
    probes: dict[str, bool]
    admitted: list[str]
    environment: dict[str, str]
    pins: dict[str, str | None]
    states: dict[str, State]


class Workspace:
    r"""A folder and the files below it that are not ignored.

    Paths are relative to ``root``, with ``/``; bytes in them that are not UTF-8 read ``\xff``. ``overlay`` holds
    texts that replace or add files without touching the disk (stdin, drafts), and None for each file that a draft
    removes. Links that leave the root are not followed. What was asked for is kept, for who wants to know whether it has
    changed: ``reads`` and ``probes`` of files, ``admitted`` ones outside the root, variables of the ``environment``, the
    ``pins`` of submodules.

    Raises:
        OpschemaError: ``exclude`` holds a malformed pattern.
    """

    def __init__(
        self, root: Path, overlay: Mapping[str, str | None] | None = None, exclude: Iterable[str] = ()
    ) -> None:
        self.root = root.resolve()
        self.overlay = dict(overlay or {})
        self.exclude = tuple(exclude)
        self._excluded = glob_spec(self.exclude, "exclude") if self.exclude else None
        self._links = Links(self.root)
        self._listed: dict[str, State] = {}
        self._listing: subprocess.Popen[bytes] | None = None
        self.unlisted = ""
        """The file that git waited for until it was given up, so that the files were listed without it; empty if it answered."""
        self.probes: dict[str, bool] = {}
        self.admitted, self.provided = set[str](), dict[str, str]()
        self.environment: dict[str, str] = {}
        self.pins: dict[str, str | None] = {}
        self._sources: dict[str, Source] = {}
        self._data: dict[str, bytes | ReadError] = {}
        self._keeps_data = True
        self._digests: dict[str, str] = {}
        self._states: dict[str, State] = {}
        self._moved: set[str] = set()
        self._drafts: set[str] = set()
        self._opened = time.time_ns()

    @property
    def asked(self) -> Asked:
        """Return all queries so far."""
        reads = self.reads
        told = {path: state for path in reads if (state := self._states.get(path)) is not None and self._settled(state)}
        return Asked(reads, self.probes, sorted(self.admitted), self.environment, self.pins, told)

    def _settled(self, state: State) -> bool:
        """Whether any change since the workspace was opened is certain to change a file's state. On systems other than POSIX,
        the modification time can be set back.
        """
        return os.name == "posix" and max(state[:2]) < self._opened - SETTLED

    def ask_again(self, asked: Asked) -> list[str] | None:
        """Repeat earlier queries of this workspace or another one with the same root. Return the files whose answer has changed,
        or None if another answer has changed.
        """
        self.admitted.update(asked.admitted)
        if any(self.variable(name) != value for name, value in asked.environment.items()):
            return None
        if any(self.submodule_pin(path) != pin for path, pin in asked.pins.items()):
            return None
        changed = [path for path, found in asked.probes.items() if self.is_file(path) != found]
        for path, state in asked.states.items():
            self._believe(path, asked.reads.get(path), state)
        return changed + [path for path, digest in asked.reads.items() if self.digest(path) != digest]

    def _believe(self, path: str, digest: str | None, state: State) -> None:
        """Take the digest that a file had in a state for its own, unread, if it is in that state."""
        unread = path not in self._digests and path not in self._data and path not in self.overlay
        if digest and unread and self._state(path) == state:
            self._digests[path], self._states[path] = digest, state

    def _state(self, path: str) -> State | None:
        """Return the state of a file inside the root, or None for any other file."""
        listed = self._listed.get(path)
        try:
            if listed is not None:
                return listed if self._links.folder_of(path)[1] else None
            target = self._inside(path)
            return state_of(os.stat(target)) if target is not None else None
        except (OSError, ValueError, RuntimeError):
            return None

    @property
    def reads(self) -> dict[str, str]:
        """The digest of every file that was requested. It is empty if the file could not be read, or changed after its digest
        was used.
        """
        kept = self.overlay.keys() | self.provided.keys()
        asked = (path for path in {**self._data, **self._digests} if path not in kept)
        return {path: "" if path in self._moved else self.digest(path) for path in asked}

    def with_overlay(self, overlay: Mapping[str, str | None]) -> Workspace:
        """Return a copy of the workspace with these texts as its overlay. It shares all files that were read."""
        other = self.updated({**self.overlay, **overlay}, overlay)
        other.__dict__["files"] = _overlaid(self.files, overlay)
        return other

    def updated(self, overlay: Mapping[str, str | None], changed: Iterable[str]) -> Workspace:
        """Return the workspace at a later time, with another overlay. It keeps the files that were read, except for ``changed``
        ones. The list of files is unchanged; if files were added or removed, open a new workspace.
        """
        other, old = Workspace(self.root, overlay, self.exclude), frozenset(changed)
        other.__dict__["files"] = self.files
        other._sources = {path: source for path, source in self._sources.items() if path not in old}
        other._data = {path: data for path, data in self._data.items() if path not in old}
        other._digests = {path: digest for path, digest in self._digests.items() if path not in old}
        other._states = {path: state for path, state in self._states.items() if path not in old}
        other._drafts = self._drafts - old
        other._moved = self._moved - old
        other._opened = self._opened
        other._links = self._links
        other.unlisted = self.unlisted
        other.admitted = self.admitted
        other.provided = self.provided
        other.environment = self.environment
        other.pins = self.pins
        return other

    def was_asked(self, path: str) -> bool:
        """Whether a file was queried so far, on disk or in the overlay."""
        return any(path in known for known in (self._digests, self._data, self._drafts, self.probes))

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files that are not ignored or excluded, sorted."""
        self.list_ahead()
        entries = entries_of(self._listing) if self._listing is not None else []
        self._listing = None
        listed = git_files(self.root, entries or [])
        self.unlisted = pipe_of_git(self.root) if entries is None else ""
        if listed is None:
            listed = dict.fromkeys(walked_files(self.root))
        self._links.names = {shown_name(name): name for name in listed}
        self._listed = {shown_name(name): state for name, state in listed.items() if state is not None}
        kept = (path for path in self._links.names if self._excluded is None or not self._excluded.ignores(path))
        return _overlaid(kept, self.overlay)

    def list_ahead(self) -> None:
        """Start listing the files with git in the background."""
        if self._listing is None and "files" not in self.__dict__ and in_git(self.root):
            skipped = (f"--exclude={name}/" for name in sorted(SKIPPED_FOLDERS))
            self._listing = ls_files(self.root, "--cached", "--others", "--exclude-standard", *skipped, "--", ".")

    def close(self) -> None:
        """End background work on files that nobody has requested."""
        if self._listing is not None:
            self._listing.kill()
            self._listing.communicate()
            self._listing = None

    @cached_property
    def file_set(self) -> frozenset[str]:
        """The same files as a set."""
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
        if path in self.file_set or path in self.provided:
            return True
        if path in self.overlay:
            return False
        if path not in self.probes:
            target = self._inside(path)
            self.probes[path] = target is not None and os.path.isfile(target)
        return self.probes[path]

    def admit(self, path: Path) -> str:
        """The name under which a file outside the root can be read from now on: its absolute path.

        Only for what the user installed or named in the environment; what a file of the workspace names is never admitted.
        """
        name = path.absolute().as_posix()
        self.admitted.add(name)
        return name

    def provide(self, path: str, text: str) -> str:
        """The name under which a text that comes with opschema can be read from now on: ``<torch 2.15>/tags.yaml``.

        The brackets say that it is not a file. It is none of ``files``, and no input of a run: opschema's own code is one.
        """
        self.provided[path] = text
        return path

    def variable(self, name: str) -> str:
        """A variable of the environment that the result depends on; empty when it is not set."""
        return self.environment.setdefault(name, os.environ.get(name, ""))

    def submodule_pin(self, path: str) -> str | None:
        """Return the full hash of the commit at which git's index pins the submodule at ``path``, whether or not it is checked
        out, or None if there is no submodule or no git. A submodule of a submodule is pinned by the submodule that contains it.
        """
        if path not in self.pins:
            self.pins[path] = pin_of_submodule(self.root, path, self._inside)
        return self.pins[path]

    def locate(self, path: str) -> Path:
        """The place of a workspace file on disk, links followed.

        Raises:
            OpschemaError: it leads out of the workspace.
        """
        target = self._inside(path)
        if target is None:
            raise OpschemaError(f"{path} leads out of the workspace {self.root}")
        return Path(target)

    def _inside(self, path: str) -> str | None:
        """The file that ``path`` leads to, links followed; None if that is outside."""
        return path if path in self.admitted else self._links.target(path)

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
            self._drafts.add(path)
            return self._drafted(path)
        if path in self.provided:
            return self.provided[path].encode()
        found = self._data.get(path)
        if found is None:
            believed = self._states.get(path) if path in self._digests else None
            is_so = False
            try:
                found, self._states[path] = self._read(path)
                is_so = self._states[path] == believed
            except ReadError as error:
                found = error
            self._data[path] = found
            if not is_so:
                self._check(path)
        if isinstance(found, ReadError):
            raise found
        if not self._keeps_data:
            self._forget(path)
        return found

    @property
    def held(self) -> Iterator[str]:
        """The files whose bytes are in memory."""
        return (path for path, data in self._data.items() if isinstance(data, bytes))

    def release(self) -> None:
        """Release the bytes of files, now and in the future. A later request reads the file again. If the file has changed in
        between, that is recorded as for any other file whose digest was assumed.
        """
        self._keeps_data = False
        for path in list(self._data):
            self._forget(path)
        return_free_memory()

    def _forget(self, path: str) -> None:
        """Release the bytes of a file, but keep the reason why it could not be read."""
        data = self._data.get(path)
        if isinstance(data, bytes):
            if path not in self._digests:
                self._digests[path] = content_digest(data)
            del self._data[path]

    def _check(self, path: str) -> None:
        """Check whether a file that has just been read for the first time still has the digest that was assumed for it."""
        believed = self._digests.pop(path, None)
        if believed is not None and self.digest(path) != believed:
            self._moved.add(path)

    @property
    def unread(self) -> Iterator[ReadError]:
        """The listed files that were requested and could not be read."""
        return (error for path, error in self._data.items() if isinstance(error, ReadError) and path in self.file_set)

    def peek(self, path: str) -> bytes:
        """Return the bytes of a file, or empty bytes if it cannot be read. For callers that only search in them."""
        try:
            return self.data(path)
        except ReadError:
            return b""

    def digest(self, path: str) -> str:
        """Return the digest of a file's bytes, or an empty text if it cannot be read."""
        if path not in self._digests:
            try:
                self._digests[path] = content_digest(self.data(path))
            except ReadError:
                self._digests[path] = ""
        return self._digests[path]

    def _drafted(self, path: str) -> bytes:
        text = self.overlay[path]
        if text is None:
            raise ReadError(path, "it does not exist")
        try:
            return text.encode(self.encoding(path, text))
        except (UnicodeError, LookupError):
            return text.encode("utf-8", "surrogatepass")

    def encoding(self, path: str, text: str) -> str:
        """The encoding in which ``text`` is written to a file: the one it declares, and the mark that the file begins with."""
        try:
            found = decode(self._read(path)[0])[1]
        except (ReadError, DecodeError):
            found = "utf-8"
        with suppress(DecodeError):
            return declared_encoding(text.encode("utf-8", "replace")) if found == "utf-8" and is_python(path) else found
        return "utf-8"

    def _read(self, path: str) -> tuple[bytes, State]:
        target = self._inside(path)
        if target is None:
            raise ReadError(path, "it leads out of the workspace")
        try:
            return read_with_state(target, MAX_FILE_BYTES)
        except FileNotFoundError:
            raise ReadError(path, "it does not exist") from None
        except OSError as error:
            raise ReadError(path, error.strerror or str(error)) from None

    def source(self, path: str) -> Source:
        """A file's text.

        Raises:
            ReadError: see :meth:`data`; or it is not text in its encoding.
        """
        if path not in self._sources:
            self._sources[path] = self.peek_source(path)
        return self._sources[path]

    def peek_source(self, path: str) -> Source:
        """Return a file's text without keeping it, unless it has been requested before.

        Raises:
            ReadError: the file cannot be read, or its text cannot be decoded.
        """
        if path in self._sources:
            return self._sources[path]
        data = self.data(path)
        try:
            text, encoding = decode(data, python=is_python(path))
        except DecodeError as error:
            raise ReadError(path, error.reason, error.offset) from None
        return Source(path, text, encoding, self.digest(path))

    def relative(self, path: Path) -> str:
        """``path`` as the workspace names it.

        Raises:
            OpschemaError: it lies outside the root.
        """
        absolute = Path(os.path.abspath(path))
        for candidate in (absolute, absolute.resolve()):
            if candidate == self.root or self.root in candidate.parents:
                return shown_name(candidate.relative_to(self.root).as_posix())
        raise OpschemaError(f"{path} is outside the workspace {self.root}")


def _overlaid(files: Iterable[str], overlay: Mapping[str, str | None]) -> tuple[str, ...]:
    added = (path for path, text in overlay.items() if text is not None)
    return tuple(sorted({path for path in files if path not in overlay}.union(added)))


def shown_name(name: str) -> str:
    """A file's name as text that any report can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name


def join(folder: str, relative: str) -> str:
    """``relative`` as seen from ``folder``, normalised; may begin with ``..`` when it leaves the root."""
    parts: list[str] = []
    for part in PurePosixPath("" if folder == "." else folder, relative).parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."

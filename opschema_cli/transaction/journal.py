"""The journal of an apply: the planned changes of each file, so that the next run can complete or revert them.

It lies in the root of the workspace, which may be hostile: a plan counts only with the seal of a key that lies in the
user's own folder. Three lines and more: the seal, the plan, then a word for each state that was reached.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from opschema_cli.cache import key_file
from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import read_regular
from opschema_cli.transaction import JOURNAL
from opschema_cli.transaction.disk import Conflict
from opschema_cli.user_key import KEY_BYTES, user_key

if sys.platform != "win32":
    import fcntl

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without locks; there, users must not start two runs at once."""

_HEAD = "opschema journal 1 "

State = Literal["staging", "commit", "abort"]
"""Staging: nothing is changed yet. Commit: all new files are complete. Abort: the changes are being reverted."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its percent-encoded path, and the digests of its bytes before and after, which are empty if it does not exist."""

    path: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """The path relative to the root, links resolved."""
        return os.fsdecode(unquote_to_bytes(self.path))


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All steps of an apply. ``token`` is part of the names of its files; ``folders`` are those that it makes."""

    token: str
    steps: list[Step]
    folders: list[str]


class Journal(msgspec.Struct, frozen=True):
    """The content of a journal. Without a plan it was cut off before anything else was written."""

    plan: Plan | None
    state: State


def quoted(path: str) -> str:
    """A path as a plan writes it: any bytes, readable where they are letters."""
    return quote_from_bytes(os.fsencode(path))


def head(plan: Plan) -> bytes:
    """The lines that a journal begins with."""
    body = msgspec.json.encode(plan)
    return f"{_HEAD}{_seal(body)}\n".encode() + body + b"\n"


def read_journal(root: Path) -> Journal | None:
    """Read the journal of a workspace; return None if there is none.

    Raises:
        OpschemaError: it cannot be read, or was not written by this user's opschema; it is to be looked at by a person.
    """
    path = root / JOURNAL
    if not os.path.lexists(path):
        return None
    if path.is_symlink():
        raise _foreign(path, "it is a link")
    try:
        return parse(path, read_regular(path))
    except FileNotFoundError:  # the run that wrote it has just ended
        return None
    except OSError as error:
        raise _foreign(path, error.strerror or str(error)) from None


def parse(path: Path, data: bytes) -> Journal:
    """The journal that a file holds.

    Raises:
        OpschemaError: see :func:`read_journal`.
    """
    lines = data.split(b"\n")
    if len(lines) < 3:
        return Journal(None, "staging")
    first, body, *states = lines[:-1]
    seal = first.decode("ascii", "replace").removeprefix(_HEAD)
    if not hmac.compare_digest(seal.encode(), _seal(body).encode()):
        raise _foreign(path, "it does not have your seal")
    try:
        plan = msgspec.json.decode(body, type=Plan)
    except msgspec.DecodeError:
        raise _foreign(path, "another version wrote it") from None
    _check(path.parent, plan)
    reached: State = "abort" if b"abort" in states else "commit" if b"commit" in states else "staging"
    return Journal(plan, reached)


def _foreign(path: Path, reason: str) -> OpschemaError:
    what = f"{path} is not a journal of yours ({reason}), so nothing is done with it"
    return OpschemaError(f"{what}; see with git whether the tree is as it should be, then delete that file")


def _check(root: Path, plan: Plan) -> None:
    """Check that all steps are inside the root, without links on the way. The seal alone is not trusted for this."""
    sound = re.fullmatch("[0-9a-f]{16}", plan.token)
    for name in (*(step.name for step in plan.steps), *(os.fsdecode(unquote_to_bytes(item)) for item in plan.folders)):
        target = root / name
        parent = target.parent
        if not sound or ".." in Path(name).parts or Path(name).is_absolute() or parent.resolve() != parent:
            raise OpschemaError(f"{root / JOURNAL} names {name!r}, which is not inside {root}; nothing is done with it")


def _seal(body: bytes) -> str:
    """Return the seal of this user. It never verifies if no key can be stored."""
    try:
        key = user_key(key_file())
    except RuntimeError:  # the user has no home
        key = os.urandom(KEY_BYTES)
    return hashlib.blake2b(body, key=key, digest_size=32, person=b"journal").hexdigest()


@contextmanager
def locked(root: Path) -> Iterator[int]:
    """The journal, open and locked; without content unless another run left some. It goes when it has none at the end.

    Raises:
        OpschemaError: another run holds it.
        Conflict: what lies there is no file.
    """
    path = root / JOURNAL
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    journal = os.open(path, flags, 0o600)
    with closing(_Handle(journal, path)) as handle:
        if not stat.S_ISREG(os.fstat(journal).st_mode):
            raise Conflict(f"{JOURNAL} is not a regular file")
        if sys.platform != "win32":
            _lock(journal, path)
        handle.locked = True
        yield journal


class _Handle(msgspec.Struct):
    """The open journal."""

    number: int
    path: Path
    locked: bool = False

    def close(self) -> None:
        """Close it, and remove it if it is ours and empty: where the system can, before others may lock it."""
        done = self.locked and not os.fstat(self.number).st_size
        if sys.platform == "win32":
            os.close(self.number)
        if done:
            # One that stays without content means nothing to anybody.
            with suppress(OSError):
                os.unlink(self.path)
        if sys.platform != "win32":
            os.close(self.number)


if sys.platform != "win32":

    def _lock(journal: int, path: Path) -> None:
        """Lock the journal. If a run removed it when it just ended, it counts as still locked."""
        busy = OpschemaError("another opschema is writing here; try again when it is done")
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        mine, there = os.fstat(journal), os.lstat(path) if os.path.lexists(path) else None
        if there is None or (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            raise busy

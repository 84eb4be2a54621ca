"""Plugins that the user has allowed to run, by the digest of their bytes.

A permission is a file in the user's own folder, outside every tree, or a digest in ``OPSCHEMA_ALLOW_PLUGINS``. It is for the
content: a plugin that changes by one byte must be allowed again, and the same plugin in another checkout need not be.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.private import read_private, write_private

VARIABLE = "OPSCHEMA_ALLOW_PLUGINS"

EVERY = "all"
"""The value of the variable that allows whatever a configuration names."""

_DIGEST = re.compile("(?:sha256:)?([0-9a-f]{64})")
_MOST = 16_384
"""Bytes of a permission."""


class Permission(msgspec.Struct, frozen=True, order=True):
    """The digest that is allowed, and the file that had it when it was."""

    path: str
    digest: str


def plugin_digest(data: bytes) -> str:
    """Return the digest that a permission refers to; ``sha256sum`` prints the same."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def as_digest(text: str) -> str | None:
    """Normalize a digest; return None if the text is not a digest."""
    match = _DIGEST.fullmatch(text.lower())
    return f"sha256:{match[1]}" if match else None


def state_folder() -> Path:
    """Return ``$OPSCHEMA_STATE_DIR``, or the platform's folder for user-specific state.

    Raises:
        RuntimeError: the user has no home.
    """
    configured = os.environ.get("OPSCHEMA_STATE_DIR")
    if configured:
        return Path(configured)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "opschema"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "opschema"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "opschema"


def is_allowed(digest: str, root: Path) -> bool:
    """Whether a plugin of the tree at ``root`` with this digest may run.

    Raises:
        OpschemaError: the variable holds something else than digests, or permissions are kept in the tree, which may have
            brought them.
    """
    named = _named_by_variable()
    if EVERY in named or digest in named:
        return True
    permission = _stored(digest)
    if permission is not None and Path(os.path.realpath(state_folder())).is_relative_to(os.path.realpath(root)):
        hint = "set OPSCHEMA_STATE_DIR to a folder outside"
        raise OpschemaError(f"permissions in {state_folder()}, inside the tree, count for nothing; {hint}")
    return permission is not None


def allow(digest: str, path: str) -> None:
    """Allow a digest from now on.

    Raises:
        OpschemaError: the permission cannot be stored.
    """
    data = msgspec.json.encode(Permission(path, digest))
    try:
        write_private(_file(digest), data, lambda file: _read(file) is not None)
    except (OSError, RuntimeError) as error:
        raise OpschemaError(f"the permission cannot be stored: {error}") from None


def revoke(digest: str) -> bool:
    """Allow a digest no longer; whether it was allowed.

    Raises:
        OpschemaError: the permission cannot be removed.
    """
    try:
        _file(digest).unlink()
    except FileNotFoundError:
        return False
    except (OSError, RuntimeError) as error:
        raise OpschemaError(f"the permission cannot be removed: {error}") from None
    return True


def permissions() -> list[Permission]:
    """All that are stored, sorted by the paths that the files had."""
    try:
        files = list(_folder().iterdir())
    except (OSError, RuntimeError):
        return []
    return sorted(found for file in files if (found := _read(file)) is not None)


def _named_by_variable() -> set[str]:
    named = set[str]()
    for word in re.split(r"[\s,]+", os.environ.get(VARIABLE, "").strip()):
        digest = word if word in ("", EVERY) else as_digest(word)
        if digest is None:
            raise OpschemaError(f"{VARIABLE}: `{word}` is neither `sha256:` with 64 hexadecimal digits nor `{EVERY}`")
        named.add(digest)
    return named - {""}


def _folder() -> Path:
    return state_folder() / "allowed-plugins"


def _file(digest: str) -> Path:
    return _folder() / digest.removeprefix("sha256:")


def _stored(digest: str) -> Permission | None:
    try:
        return _read(_file(digest))
    except RuntimeError:  # the user has no home
        return None


def _read(file: Path) -> Permission | None:
    """The permission in a file; None if it does not count: it is another's, or not for the digest that names the file."""
    data = read_private(file, _MOST)
    try:
        found = msgspec.json.decode(data, type=Permission) if data is not None else None
    except (msgspec.MsgspecError, ValueError):
        return None
    return found if found is not None and found.digest == f"sha256:{file.name}" else None

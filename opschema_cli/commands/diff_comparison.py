"""The comparison of two sides, from the cache where neither of them has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from opschema_cli.cache import decoded
from opschema_cli.commands.diff_doubts import doubt_of
from opschema_cli.commands.diff_sides import TableSide
from opschema_cli.commands.revisions import asked_of
from opschema_cli.diff.compare import Comparison, compare
from opschema_cli.diff.entries import Entry
from opschema_cli.session import Session
from opschema_cli.workspace import Asked

_KIND = "comparison"


class _Stored(msgspec.Struct, array_like=True):
    asked: Asked
    result: Comparison


def comparison(
    session: Session, old: TableSide, new: TableSide, before: Sequence[Entry], now: Sequence[Entry]
) -> Comparison:
    """The changes between the operators of two sides, ``before`` and ``now``."""
    workspace, key = new.project.workspace, _key(session, old, new)
    stored = decoded(session.cache.get(_KIND, [key]).get(key), _Stored) if key else None
    if stored is not None and workspace.ask_again(stored.asked) == []:
        return stored.result
    result = compare(before, now, doubt_of(old, new))
    if key and not new.problems and not old.problems:
        session.cache.put(_KIND, {key: msgspec.msgpack.encode(_Stored(asked_of(workspace), result))})
    return result


def _key(session: Session, old: TableSide, new: TableSide) -> str:
    """The key of the sides and of the files that are left out; empty where a side has none."""
    parts = (old.key, new.key, *session.config.diff.private)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest() if old.key and new.key else ""

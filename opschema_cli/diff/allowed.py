"""Breaking changes that a workspace accepts, with the unused and the expired entries."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from opschema_cli.config import Allowance
from opschema_cli.config_places import WordError
from opschema_cli.diff.model import KINDS, Change
from opschema_cli.suggestions import did_you_mean, near_name


class Judged(msgspec.Struct, frozen=True):
    """Changes without the accepted ones, how many these are, and the entries that are unused and that have expired."""

    changes: list[Change]
    accepted: int
    unused: list[Allowance]
    expired: list[Allowance]


def without_allowed(
    changes: Iterable[Change], allowed: Sequence[Allowance], breaks: Sequence[bool], today: datetime.date
) -> Judged:
    """Remove the accepted changes; only breaking ones need an entry.

    Raises:
        WordError: an entry names no kind of change, or no date.
    """
    expired = [item for item in allowed if _day(item) <= today]
    current = [item for item in allowed if item not in expired]
    kept: list[Change] = []
    used: set[int] = set()
    accepted = 0
    for change, is_breaking in zip(changes, breaks, strict=True):
        entries = [number for number, item in enumerate(current) if is_breaking and _matches(item, change)]
        used.update(entries)
        accepted += bool(entries)
        kept += [] if entries else [change]
    return Judged(kept, accepted, [item for number, item in enumerate(current) if number not in used], expired)


def _matches(item: Allowance, change: Change) -> bool:
    return fnmatchcase(change.operator, item.operator) and item.kind in ("", change.kind, KINDS[change.kind].code)


def _day(item: Allowance) -> datetime.date:
    where = f"diff.allow: the entry for `{item.operator}`"
    codes = {kind.code for kind in KINDS.values()}
    if item.kind and item.kind not in KINDS and item.kind not in codes:
        hint = did_you_mean(near_name(item.kind, KINDS)) or "; docs/diff.md lists them"
        raise WordError(f"{where}: no kind of change is called `{item.kind}`{hint}", item.kind)
    try:
        return datetime.date.fromisoformat(item.expires)
    except ValueError:
        raise WordError(f"{where}: `{item.expires}` is not a date; write it as 2027-01-31", item.expires) from None

"""Workloads of the old side that the code of the new side refuses, as the packs' interpreters answer for both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from opschema_cli.cache import decoded
from opschema_cli.commands.diff_sides import TableSide
from opschema_cli.commands.revisions import asked_of
from opschema_cli.diff.entries import Entry, Workload
from opschema_cli.diff.model import Change
from opschema_cli.diff.workload_diff import Answers, refusal_changes
from opschema_cli.lint.settings import pack_options
from opschema_cli.operators.answers import RowAnswer
from opschema_cli.operators.model import WorkloadRow
from opschema_cli.session import Session
from opschema_cli.workspace import Asked

_KIND = "refusals"


class _Stored(msgspec.Struct, array_like=True):
    asked: tuple[Asked, Asked]
    changes: list[Change]


def refusals(session: Session, old: TableSide, new: TableSide) -> list[Change]:
    """The changes, from the cache if neither side has changed since."""
    if old.project is new.project or not any(row.values for item in old.entries for row in item.workloads):
        return []
    sides = (old, new)
    key = "\0".join(side.key for side in sides)
    stored = decoded(session.cache.get(_KIND, [key]).get(key), _Stored)
    if stored is not None and all(
        side.project.workspace.ask_again(asked) == [] for side, asked in zip(sides, stored.asked, strict=True)
    ):
        return stored.changes
    changes = list(_changes(old, new))
    asked = asked_of(old.project.workspace), asked_of(new.project.workspace)
    session.cache.put(_KIND, {key: msgspec.msgpack.encode(_Stored(asked, changes))})
    return changes


def _changes(old: TableSide, new: TableSide) -> list[Change]:
    """The changes of each pack that answers."""
    found: list[Change] = []
    for name in dict.fromkeys(item.pack for item in old.entries if item.workloads):
        before, now = _answers(old, name), _answers(new, name)
        if before is not None and now is not None:
            kept = [[item for item in side.entries if item.pack == name] for side in (old, new)]
            found += refusal_changes(kept[0], kept[1], before, now)
    return found


def _answers(side: TableSide, name: str) -> Answers | None:
    """The answers of a pack for a side; None if it has none."""
    if side.session is None:
        return None
    session = side.session
    pack = next((item for item in session.registry_for(side.project).packs if item.name == name), None)
    ask = pack.answers if pack is not None else None
    if ask is None:
        return None
    options = pack_options(session.config, session.registry)[name]

    def answers(rows: Mapping[str, Sequence[Workload]]) -> Mapping[str, Sequence[RowAnswer]]:
        return ask(side.project, options, {op: tuple(map(_row, items)) for op, items in rows.items()})

    return answers


def _row(item: Workload) -> WorkloadRow:
    return WorkloadRow(item.label, item.dtypes, item.values, item.place)


def with_refusals(changes: Sequence[Change], found: Sequence[Change], entries: Sequence[Entry]) -> list[Change]:
    """The changes with the refusals of public operators."""
    public = {(item.pack, item.name) for item in entries}
    return [*changes, *(item for item in found if (item.pack, item.operator) in public)]

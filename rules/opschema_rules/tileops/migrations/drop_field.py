"""`drop-field`: a field away from all entries that a condition chooses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.text import Span
from opschema_rules.tileops.migrations.conditions import chosen
from opschema_rules.tileops.migrations.entries import all_entries, unique, without_repeated
from opschema_rules.tileops.migrations.fields import Slot, drop_fields, read_path, read_value, slots
from opschema_rules.tileops.migrations.known_fields import check_path
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS


class DropField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``path`` is the field; ``op`` and ``where`` choose entries, ``value`` only those where it has that value."""

    path: str
    op: str = ""
    where: str = ""
    value: str | None = None


def find(draft: Draft, options: DropField) -> Iterator[Site]:
    """The places that have the field."""
    path = read_path(options.path)
    value = read_value(options.value) if options.value is not None else None
    check_path(draft, path)
    for entry in chosen(draft, options.op, options.where):
        for slot in slots(entry, path):
            if slot.node is not None and (options.value is None or repr(entry.data_of(slot.node)) == repr(value)):
                title = f"drop `{'.'.join(map(str, slot.path))}` of `{entry.name}`"
                yield Site(entry.at(slot.node), title, (entry.name,), subject=slot)


@migration(
    "drop-field",
    find=find,
    options=DropField,
    scope=ENTRIES,
    settled="no entry that the condition chooses has the field",
    proof=ROWS,
)
def drop_field(draft: Draft, sites: Sequence[Site], options: DropField) -> Iterator[Note]:
    """Drop a field from all entries that a condition chooses, with its comments.

    Paths and conditions are those of `add-field`; with `-o value=` only a field with that value is removed. A mapping that
    becomes empty is removed too, unless the tree writes it as `{}` elsewhere or requires it, or it is named by the author,
    like an input. An anchor is removed once all of its aliases are. If no entry has the field any more, notes list code
    that still reads it.

        opschema migrate drop-field -o path=signature.static_dims -o where=family=normalization
    """
    sites, refused = without_repeated(draft, sites)
    yield from refused
    path, entries = read_path(options.path), all_entries(draft)
    places = {site.place for site in sites}
    notes: list[Note] = []
    # In rounds: an anchor can go once all of its aliases are gone.
    while places:
        revision = draft.revision
        groups = _groups(all_entries(draft), path, places)
        notes = list(drop_fields(draft, entries, groups))
        draft.settle()
        if draft.revision == revision:
            break
        places = {draft.forward(note.place, revision) for note in notes}
    yield from unique(notes)
    left = (slot for entry in all_entries(draft) for slot in slots(entry, path))
    if sites and all(slot.node is None for slot in left):
        yield from _readers(draft, path[-1])


def _groups(entries: Iterable[OpEntry], path: Sequence[str], places: Collection[Place]) -> list[list[Slot]]:
    """The fields at some places, those of one mapping together."""
    groups: dict[tuple[int, int], list[Slot]] = {}
    for entry in entries:
        for slot in slots(entry, path):
            if slot.node is not None and entry.at(slot.node) in places:
                groups.setdefault((id(entry), slot.owner.start), []).append(slot)
    return list(groups.values())


def _readers(draft: Draft, name: str) -> Iterator[Note]:
    """Python files that still name the field in a string."""
    for source in texts_with(draft.project, [name]):
        at = min((at for quote in "\"'" if (at := source.text.find(f"{quote}{name}{quote}")) >= 0), default=-1)
        if source.path.endswith(".py") and at >= 0:
            yield Note(
                Place(source.path, Span(at + 1, at + 1 + len(name))),
                f"this names `{name}`, which no entry has any more",
            )

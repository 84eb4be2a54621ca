"""`drop-field`: a field away from all entries that a condition chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.text import Span
from opschema_rules.tileops.migrations.entries import all_entries
from opschema_rules.tileops.migrations.fields import Slot, chosen, drop_fields, read_path, read_value, slots
from opschema_rules.tileops.migrations.words import texts_with


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
    for entry in chosen(all_entries(draft), options.op, options.where):
        for slot in slots(entry, path):
            if slot.node is not None and (options.value is None or repr(entry.data_of(slot.node)) == repr(value)):
                title = f"drop `{'.'.join(map(str, slot.path))}` of `{entry.name}`"
                yield Site(entry.at(slot.node), title, (entry.name,), subject=slot)


@migration("drop-field", find=find, options=DropField)
def drop_field(draft: Draft, sites: Sequence[Site], options: DropField) -> Iterator[Note]:
    """Drop a field from all entries that a condition chooses, with the comments that belong to it.

    Paths and conditions are those of `add-field`; with `-o value=` only a field of that value goes. A mapping that is
    left empty goes too, unless the tree writes it as `{}` elsewhere or demands it. If no entry has the field any more,
    code that still reads it is noted.

        opschema migrate drop-field -o path=signature.static_dims -o where=family=normalization
    """
    entries = all_entries(draft)
    groups: dict[tuple[int, int], list[Slot]] = {}
    for site in sites:
        if isinstance(site.subject, Slot):
            slot = site.subject
            groups.setdefault((id(slot.entry), slot.owner.start), []).append(slot)
    for group in groups.values():
        yield from drop_fields(draft, entries, group)
    draft.settle()
    path = read_path(options.path)
    left = (slot for entry in all_entries(draft) for slot in slots(entry, path))
    if groups and all(slot.node is None for slot in left):
        yield from _readers(draft, path[-1])


def _readers(draft: Draft, name: str) -> Iterator[Note]:
    """Python files that still name the field in a string."""
    for source in texts_with(draft, name):
        at = min((at for quote in "\"'" if (at := source.text.find(f"{quote}{name}{quote}")) >= 0), default=-1)
        if source.path.endswith(".py") and at >= 0:
            yield Note(
                Place(source.path, Span(at + 1, at + 1 + len(name))),
                f"this names `{name}`, which no entry has any more",
            )

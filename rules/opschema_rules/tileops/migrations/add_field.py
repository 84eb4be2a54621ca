"""`add-field`: a field on all entries that a condition chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_rules.tileops.migrations.conditions import chosen
from opschema_rules.tileops.migrations.entries import all_entries, refusal, without_repeated
from opschema_rules.tileops.migrations.fields import KeyOrder, Slot, read_path, read_value, slots, value_edits
from opschema_rules.tileops.migrations.known_fields import check_path
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.proofs import ROWS


class AddField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``path`` and ``value`` are the field; ``op`` and ``where`` choose entries, and ``replace`` also sets a field that has
    another value.
    """

    path: str
    value: str
    op: str = ""
    where: str = ""
    replace: bool = False


def find(draft: Draft, options: AddField) -> Iterator[Site]:
    """The places that lack the field, or have another value where that is to be replaced."""
    path, value = read_path(options.path), read_value(options.value)
    check_path(draft, path[: _last_star(path)])
    for entry in chosen(draft, options.op, options.where):
        for slot in slots(entry, path):
            if slot.node is None or (options.replace and repr(entry.data_of(slot.node)) != repr(value)):
                title = f"{'add' if slot.node is None else 'set'} `{_name(slot)}` of `{entry.name}`"
                yield Site(_place(slot), title, (entry.name,), subject=slot)


def _last_star(path: Sequence[str]) -> int:
    """The number of steps of a path that are never created where they are missing: those before its last `*`."""
    return max((at for at, step in enumerate(path) if step == "*"), default=0)


@migration(
    "add-field",
    find=find,
    options=AddField,
    scope=ENTRIES,
    settled="every entry that the condition chooses has the field",
    proof=ROWS,
)
def add_field(draft: Draft, sites: Sequence[Site], options: AddField) -> Iterator[Note]:
    """Add a field to all entries that a condition chooses.

    The path is written with dots, and `*` stands for every key or item: `status`, `source.bench_manifest_driven`,
    `signature.params.*.kw_only`. The value is YAML. An existing field is kept, unless `-o replace=true`. A missing mapping
    on the path is created, but never in place of a `*`.

    Entries are chosen by name (`-o op=Exp*,LogFwdOp`) and by conditions that must all be true (`-o where=`):
    `status=implemented`, `family!=norm*`, `has:source.bench`, `lacks:source.kernel_map`. A name that is in neither the
    manifest's schema nor an entry, but resembles one of those, is rejected as misspelt, except after `!=` and `lacks:`.

    The field is written as its neighbours are, in block or flow style, in the place that it has in the tree's other
    entries.

        opschema migrate add-field -o path=source.bench_manifest_driven -o value=true -o where=status=implemented
    """
    sites, refused = without_repeated(draft, sites)
    yield from refused
    order, value = KeyOrder(all_entries(draft)), read_value(options.value)
    found = [site.subject for site in sites if isinstance(site.subject, Slot)]
    for slot in found:
        try:
            draft.edit(slot.entry.file.path, value_edits(order, slot, value))
        except (YamlEditError, ValueError) as error:
            yield refusal(_place(slot), f"write `{options.path}`", error)
    draft.settle()


def _place(slot: Slot) -> Place:
    return slot.entry.at(slot.node or slot.owner)


def _name(slot: Slot) -> str:
    return ".".join(map(str, slot.path))

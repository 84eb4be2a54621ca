"""`derive-field`: a field that entries lack, with the value that follows from the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.migrations.conditions import chosen
from opschema_rules.tileops.migrations.derived_values import DERIVED
from opschema_rules.tileops.migrations.entries import all_entries, refusal, without_repeated
from opschema_rules.tileops.migrations.fields import KeyOrder, Slot, read_path, slots, value_edits
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.proofs import ROWS


class DeriveField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``path`` is the field; ``op`` and ``where`` choose entries."""

    path: str
    op: str = ""
    where: str = ""


def find(draft: Draft, options: DeriveField) -> Iterator[Site]:
    """The entries that lack the field."""
    path = read_path(options.path)
    if path not in DERIVED:
        known = [".".join(steps) for steps in DERIVED]
        hint = did_you_mean(near_name(options.path, known)) or f"; known are {', '.join(map('`{}`'.format, known))}"
        raise OptionError(f"no value of `{options.path}` follows from the code{hint}")
    for entry in chosen(draft, options.op, options.where):
        for slot in slots(entry, path):
            if slot.node is None:
                yield Site(entry.at(slot.owner), f"add `{options.path}` of `{entry.name}`", (entry.name,), subject=slot)


@migration(
    "derive-field",
    find=find,
    options=DeriveField,
    scope=ENTRIES,
    settled="every entry that the condition chooses has the field",
    proof=ROWS,
)
def derive_field(draft: Draft, sites: Sequence[Site], options: DeriveField) -> Iterator[Note]:
    """Add a missing field to entries, with the value that follows from the code.

    | field | follows from |
    |---|---|
    | `status` | whether the file of `source.op` defines the op's class |
    | `source.op` | the only module that defines the op's class |
    | `source.kernel_map` | `default_kernel_map` of the op's class |
    | `source.bench_manifest_driven` | what the benchmark reads from the manifest |

    If the value is not certain, the entry is left unchanged, with a note. An existing field is kept. Entries are chosen as
    by `add-field`.

        opschema migrate derive-field -o path=source.kernel_map -o where=status=implemented
    """
    sites, refused = without_repeated(draft, sites)
    yield from refused
    order = KeyOrder(all_entries(draft))
    derive, source = DERIVED[read_path(options.path)]
    for site in sites:
        slot = site.subject
        value = derive(slot.entry) if isinstance(slot, Slot) else None
        if not isinstance(slot, Slot) or value is None:
            yield Note(site.place, f"{site.title} by hand: {source} does not give it", leaves_site=True)
            continue
        try:
            draft.edit(slot.entry.file.path, value_edits(order, slot, value))
        except (YamlEditError, ValueError) as error:
            yield refusal(site.place, f"write `{options.path}`", error)
    draft.settle()

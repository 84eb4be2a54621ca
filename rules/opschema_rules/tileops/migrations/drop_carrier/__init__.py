"""Removes carriers, 0-dim tensors that stand for a dtype, from the manifest, the ops, the validator and the tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import NoMigrationOptions, Note, Site, migration
from opschema_cli.migrate.workbench import Workbench
from opschema_rules.tileops.migrations.drop_carrier.checks import drop_exceptions, relax_demands
from opschema_rules.tileops.migrations.drop_carrier.forwards import Eager, inline
from opschema_rules.tileops.migrations.drop_carrier.groups import sites
from opschema_rules.tileops.migrations.drop_carrier.leftovers import Leftovers
from opschema_rules.tileops.migrations.drop_carrier.narrative import Removed, drop_narrative, kinds_in, remarks
from opschema_rules.tileops.migrations.drop_carrier.ops import migrate_groups
from opschema_rules.tileops.migrations.drop_carrier.unseen import idle
from opschema_rules.tileops.migrations.entries import all_entries, manifests
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.proofs import HARNESS


def find(draft: Draft, options: NoMigrationOptions) -> Iterator[Site]:
    """Every entry that declares a carrier, and every other carrier of an op class."""
    for manifest in manifests(draft):
        yield from sites(manifest)


@migration("drop-carrier", find=find, rewrites_trees=True, scope=ENTRIES, settled="no op has a carrier", proof=HARNESS)
def drop_carrier(draft: Draft, chosen: Sequence[Site], options: NoMigrationOptions) -> Iterator[Note]:
    """Drop carriers: an op without tensor inputs declares `inputs: {}`, and its dtype as a parameter.

    A carrier is a 0-dimensional tensor that nobody passes and nothing reads: it only lends an op's output a dtype, and a
    traced custom op a device (CAR101 to CAR104). Carriers are found by what they are, whatever they are called.

    The manifest: the input goes, tensors that took its dtype get its dtypes, the constructor's parameter that it was made
    with is declared, rows lose its shape and get that parameter, one row for each dtype with a label of its own. The code:
    op classes lose the tensor, the custom op and what only its call needed, and run at once what it ran; an op that has real
    inputs keeps its custom op, without the parameter. Helpers, variables and imports go once nothing uses them.

    Checks and tests that demand an input of every op accept a param in its place, with a test that says so. Once no entry
    of a manifest has a carrier, its validators lose their exception for such ops, and the tests that only assert it go too.

    An op that cannot be migrated with certainty stays whole, with a note that says why. Notes also say what is left to
    reword: words for the kind of op that is no more, counts, documents.
    """
    leftovers = Leftovers(draft)
    workbench = Workbench(draft, leftovers.finish)
    outcome = migrate_groups(draft, workbench, chosen)
    yield from outcome.notes
    every = dict.fromkeys(group.subjects[0].carriers for group in outcome.migrated)
    removed = Removed(ops=outcome.entries, kept={word for carriers in every for word in outcome.kept(carriers)})
    for carriers in every:
        if outcome.is_complete(carriers):
            yield from drop_exceptions(draft, workbench, carriers.manifest, removed.names)
        if outcome.leaves_no_input(carriers):
            yield from relax_demands(draft, workbench, carriers.manifest)
        for helper in leftovers.sweep(workbench, carriers.bodies):
            removed.names.add(helper.name)
            removed.kinds |= kinds_in([helper.text])
    yield from outcome.remarks(removed)
    workbench.commit()
    draft.settle()
    _inline(draft, outcome.later)
    for carriers in every:
        removed.forget_used(draft.project, carriers.bodies.paths, _inputs(draft))
    drop_narrative(draft, removed)
    draft.settle()
    yield from remarks(draft, removed)
    for carriers in every:
        yield from idle(draft.project, carriers.bodies, removed.called)


def _inline(draft: Draft, eager: Iterable[Eager]) -> None:
    """Inline the methods whose calls the first round wrote."""
    workbench = Workbench(draft)
    for item in eager:
        with workbench.on(item.body.file.path) as rewrite:
            inline(rewrite, item)
    workbench.commit()
    draft.settle()


def _inputs(draft: Draft) -> set[str]:
    """The names of all inputs that are left."""
    return {tensor.name for entry in all_entries(draft) for tensor in entry.inputs}

"""`sync-signature`: makes parameters in manifest and code agree, following the given side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.program import ClassRef
from opschema_rules.tileops.drift import Drift
from opschema_rules.tileops.migrations.code_signatures import CodeSignatures, Wanted, wanted_changes
from opschema_rules.tileops.migrations.entries import all_entries, named, without_repeated, words_of
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.migrations.yaml_order import misordered, reorder_keys
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.rules.parameters import default_drifts, kw_only_drifts

WHAT = ("kw_only", "defaults", "order")


class SyncSignature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"side": "from"}):
    """``from`` is the side that is right, ``what`` lists `kw_only`, `defaults` and `order`, ``op`` ops or patterns of names."""

    side: Literal["code", "yaml"]
    what: str = "kw_only,defaults"
    op: str = ""


class _Section(msgspec.Struct, frozen=True):
    """A section of an entry with keys in another order than the code's parameters."""

    entry: OpEntry
    name: str
    order: tuple[str, ...]


def find(draft: Draft, options: SyncSignature) -> Iterator[Site]:
    """Sites where both sides differ in one of the requested aspects."""
    what = words_of(options.what)
    for word in what:
        if word not in WHAT:
            raise OptionError(f"`{word}` is not one of `kw_only`, `defaults`, `order`")
    ops = [_implementation(entry) for entry in named(all_entries(draft), options.op)]
    found = [op for op in ops if op is not None]
    yield from _in_manifest(found, what) if options.side == "code" else _in_code(found, what)


def _implementation(entry: OpEntry) -> OpImplementation | None:
    return OpImplementation(entry, entry.op_class) if isinstance(entry.op_class, ClassRef) else None


def _in_manifest(ops: Sequence[OpImplementation], what: Sequence[str]) -> Iterator[Site]:
    checks: list[tuple[str, str, Callable[[OpImplementation], Iterator[Drift]]]] = [
        ("kw_only", "SIG204", kw_only_drifts),
        ("defaults", "SIG203", default_drifts),
    ]
    for op in ops:
        for word, code, check in checks:
            for drift in check(op) if word in what else ():
                title = drift.fix.title if drift.fix is not None else f"by hand: {drift.message}"
                yield Site(drift.entry, f"{title} in `{op.name}`", (op.name,), (code,), drift)
        for section, order in misordered(op) if "order" in what else ():
            text = f"write `{section}` of `{op.name}` in the order of the code"
            yield Site(op.entry.place, text, (op.name,), ("SIG101",), _Section(op.entry, section, tuple(order)))


def _in_code(ops: Sequence[OpImplementation], what: Sequence[str]) -> Iterator[Site]:
    for wanted in wanted_changes(ops, what):
        yield Site(wanted.place, wanted.title, wanted.ops, wanted.codes, wanted)


@migration(
    "sync-signature", find=find, options=SyncSignature, scope=ENTRIES, settled="both sides say the same", proof=ROWS
)
def sync_signature(draft: Draft, sites: Sequence[Site], options: SyncSignature) -> Iterator[Note]:
    """Make the parameters of the manifest and the code agree; `-o from=` names the side that is right.

    `-o what=` lists what is compared: `kw_only`, `defaults` and `order` (default: the first two).

    `from=code` changes the manifest: `kw_only: true` is added or removed, `default` added, set or removed, inputs and
    parameters are written in the order of `forward()` and `__init__()`, each with its comments.

    `from=yaml` changes the code: parameters of `__init__()` move across the `*`, which itself moves where that is enough, is
    added where there is none, and is removed where nothing follows it. (Parameters that only the op has, such as
    `kernel_map`, follow it.) They get or lose their default, or are put into the order of the manifest, as are the inputs of
    `forward()`. A method that ops share changes only if all their entries say the same. Calls that pass moved parameters by
    position, or omit one that has no default any more, are reported as notes.

    Computed defaults, `*args` and comments among the parameters are left unchanged, with notes.

        opschema migrate sync-signature -o from=yaml -o what=kw_only
    """
    sites, refused = without_repeated(draft, sites)
    yield from refused
    if options.side == "yaml":
        wanted = [site.subject for site in sites if isinstance(site.subject, Wanted)]
        yield from CodeSignatures(draft).apply(wanted)
        return
    chosen = set(map(_key, sites))
    for word in words_of(options.what):  # one after the other: several may touch one mapping
        step = msgspec.structs.replace(options, what=word)
        notes = [note for site in find(draft, step) if _key(site) in chosen for note in _apply(draft, site)]
        yield from notes
        draft.settle()


def _key(site: Site) -> tuple[object, ...]:
    """The identity of a manifest's site after edits around it."""
    return site.place.path, site.ops, site.title


def _apply(draft: Draft, site: Site) -> Iterator[Note]:
    subject = site.subject
    if isinstance(subject, _Section):
        yield from reorder_keys(draft, subject.entry, subject.name, subject.order)
    elif isinstance(subject, Drift) and subject.fix is not None:
        for item in subject.fix.edits:
            draft.edit(item.path, [item.edit])
    elif isinstance(subject, Drift):
        yield Note(site.place, f"{subject.message}; write it by hand", leaves_site=True)

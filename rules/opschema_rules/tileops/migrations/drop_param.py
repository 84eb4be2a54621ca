"""`drop-param`: a parameter away from entries, constructors and calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.phrases import quoted
from opschema_cli.source.text import Edit, apply_edits
from opschema_cli.source.yaml import Data
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_rules.tileops.migrations.call_sites import key_of
from opschema_rules.tileops.migrations.entries import (
    all_entries,
    by_manifest,
    identity,
    named,
    unique,
    without_repeated,
    words_of,
)
from opschema_rules.tileops.migrations.fields import field_edits, read_value, slots
from opschema_rules.tileops.migrations.leftover import Leftover
from opschema_rules.tileops.migrations.param_code import ParamCode
from opschema_rules.tileops.migrations.param_texts import ParamTexts, rules_removed
from opschema_rules.tileops.migrations.param_values import OtherValues, methods_with
from opschema_rules.tileops.migrations.removals import remove_keys
from opschema_rules.tileops.migrations.row_keys import note_quoted_keys
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.migrations.sharing import is_made, repeated_method
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.signature import statement


class DropParam(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``param`` lists names, ``op`` ops or patterns of their names; ``value`` is the value that one parameter is fixed to."""

    param: str
    op: str = ""
    value: str | None = None


class _Drop(msgspec.Struct, frozen=True):
    """The parameters of one entry that go."""

    entry: OpEntry
    names: tuple[str, ...]

    @property
    def place(self) -> Place:
        """The first of them in the entry."""
        found = self.entry.param(self.names[0])
        return self.entry.at(found.key if found is not None else self.entry.key)

    @property
    def title(self) -> str:
        """The change in words, for the site and its notes."""
        return f"drop {quoted(self.names)} of `{self.entry.name}`"


def find(draft: Draft, options: DropParam) -> Iterator[Site]:
    """The entries that declare one of the parameters."""
    wanted = words_of(options.param)
    if not wanted or (options.value is not None and len(wanted) > 1):
        raise OptionError("`param` is one name with a `value`, or a list of names without")
    for entry in named(all_entries(draft), options.op):
        names = tuple(name for name in wanted if entry.param(name) is not None)
        if names:
            drop = _Drop(entry, names)
            yield Site(drop.place, drop.title, (entry.name,), ("SIG201",), drop)


@migration(
    "drop-param", find=find, options=DropParam, scope=ENTRIES, settled="no entry declares the parameters", proof=ROWS
)
def drop_param(draft: Draft, sites: Sequence[Site], options: DropParam) -> Iterator[Note]:
    """Drop parameters: from `signature.params`, from rows, from rules that only constrain them, and from code.

    In code, a parameter of `__init__()` or `forward()` is removed, and calls no longer pass it. If the method uses it or is
    defined several times, or another op that shares the method declares it, neither the code nor the entry changes, and a
    note gives the reason (`drop-field` removes it from the manifest alone). The same applies if the constructor is
    created at run time.
    With `-o value=` its uses are folded to that value: in the method, in shape rules, in static dimensions and in the
    roofline; a rule that is then always true is removed. An entry is left unchanged, with a note, if one of its rows or a
    call of its op has another value, given or by default, or if a rule does not allow or an expression cannot take this one.

    If a shape declares a dimension with the same name, that replaces it: rules, formulas and rows keep it. A rule that only
    constrains names of other rules is kept, and so are these names in rows. An entry is left unchanged, with a note, if an
    expression would read a name that no longer has a value (no dimension, no rule that equates it, and for rules no row),
    or if a part of it cannot be edited, such as one below an anchor. Notes list what else uses the parameter: rules and
    formulas that relate it to other names, code that reads it from rows.

        opschema migrate drop-param -o op=DropoutOp -o param=N_total,dtype
        opschema migrate drop-param -o op=SoftmaxFwdOp -o param=tune -o value=false
    """
    sites, refused = without_repeated(draft, sites)
    yield from refused
    entries = all_entries(draft)
    folded = read_value(options.value) if options.value is not None else None
    wanted = [(site, site.subject) for site in sites if isinstance(site.subject, _Drop)]
    fixed = by_manifest(drop.entry for _, drop in wanted) if options.value is not None else []
    others = {id(group[0].manifest): OtherValues(draft, group, words_of(options.param)[0], folded) for group in fixed}
    drops: list[_Drop] = []
    notes: list[Note] = []
    ready: list[_Ready] = []
    for site, drop in wanted:
        try:
            if others:
                others[id(drop.entry.manifest)].check(drop.entry)
            ready.append(_rewritten(entries, site, drop, options))
        except LeftAlone as left:
            notes += _left(site, left)
    held = _held_by_code(draft, [item.drop for item in ready], folded, fold=options.value is not None)
    for item in ready:
        drop = item.drop
        if drop.entry in held:
            notes += _left(item.site, held[drop.entry])
            continue
        draft.edit(drop.entry.file.path, item.edits)
        drops.append(drop)
        notes += item.notes
        notes += (note for name in drop.names for note in note_quoted_keys(draft, [drop.entry], name))
    yield from unique(notes)
    draft.settle()
    for name in words_of(options.param):
        ops = {identity(drop.entry) for drop in drops if name in drop.names}
        for chosen in by_manifest(entry for entry in all_entries(draft) if identity(entry) in ops):
            yield from ParamCode(draft, chosen, name, folded, options.value is not None).rewrite()


def _held_by_code(draft: Draft, drops: Sequence[_Drop], value: Data, *, fold: bool) -> dict[OpEntry, LeftAlone]:
    """Return the entries whose code cannot lose a parameter, with the reason; one that remains keeps those whose ops share its
    methods.
    """
    held: dict[OpEntry, LeftAlone] = {}
    for drop in drops:
        repeated = repeated_method(drop.entry, drop.names)
        if repeated is not None:
            place, method = repeated
            held[drop.entry] = LeftAlone(place, f"`{method}()` is defined several times")
        elif is_made(drop.entry, "__init__") and not all(any(methods_with(drop.entry, name)) for name in drop.names):
            held[drop.entry] = LeftAlone(drop.place, f"{drop.title} by hand: its `__init__()` is made at run time")
    while True:
        before = len(held)
        for name in dict.fromkeys(name for drop in drops for name in drop.names):
            left = [drop.entry for drop in drops if name in drop.names and drop.entry not in held]
            for chosen in by_manifest(left):
                refused = ParamCode(draft, chosen, name, value, fold).refused()
                for entry in chosen:
                    keys = [key_of(ref) for ref in methods_with(entry, name)]
                    stays = next((refused[key] for key in keys if key in refused), None)
                    if stays is not None:
                        held[entry] = LeftAlone(stays.place, stays.message)
        if len(held) == before:
            return held


def _left(site: Site, left: LeftAlone) -> Iterator[Note]:
    """The notes on an entry that is left unchanged."""
    if left.place == site.place:
        yield Note(site.place, left.reason, leaves_site=True)
    else:
        yield Note(left.place, left.reason)
        yield Note(site.place, f"{site.title} by hand: elsewhere, {left.reason}", leaves_site=True)


class _Ready(msgspec.Struct, frozen=True):
    """An entry without the parameters: the edits of its file, and notes on its remaining mentions."""

    site: Site
    drop: _Drop
    edits: list[Edit]
    notes: list[Note]


def _rewritten(entries: Sequence[OpEntry], site: Site, drop: _Drop, options: DropParam) -> _Ready:
    """The edits of an entry; nothing is drafted.

    Raises:
        LeftAlone: a part of it cannot be edited.
    """
    entry = drop.entry
    dropped = [slot for name in drop.names for slot in slots(entry, ("signature", "params", name))]
    try:
        edits, notes = _edits(drop, options)
        edits += field_edits(entries, dropped)
        apply_edits(entry.file.source.text, edits)
    except ValueError as error:
        raise LeftAlone(site.place, f"{site.title} by hand: {error}") from None
    return _Ready(site, drop, edits, notes)


def _edits(drop: _Drop, options: DropParam) -> tuple[list[Edit], list[Note]]:
    """Return the edits of rows, rules and formulas, and notes on what remains in them.

    Raises:
        LeftAlone: an expression would name what nothing gives a value.
    """
    sizes = statement(drop.entry).sizes
    if options.value is None:
        found = Leftover(drop.entry, drop.names)
        return [*_row_edits(drop, sizes | found.related), *rules_removed(drop.entry, found.removed)], found.notes()
    texts = ParamTexts(drop.entry, drop.names[0], read_value(options.value))
    if drop.names[0] not in sizes:
        texts.fold()
    return [*_row_edits(drop, sizes), *texts.edits], texts.notes


def _row_edits(drop: _Drop, kept: Collection[str]) -> list[Edit]:
    edits: list[Edit] = []
    for row in drop.entry.rows:
        names = [name for name in drop.names if name in row.data and name not in kept]
        merged = [name for name in names if row.node.pair(name) is None]
        if merged:
            raise YamlEditError(f"the key `{merged[0]}` of a row comes from a merge", row.node.span)
        edits += remove_keys(drop.entry.file, row.node, names) if names else []
    return edits

"""`drop-param`: a parameter away from entries, constructors and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.text import Edit, apply_edits
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import YamlEditError, remove_key, set_value
from opschema_rules.tileops.formulas import formulas
from opschema_rules.tileops.migrations.entries import (
    OptionError,
    all_entries,
    by_manifest,
    named,
    refusal,
    unique,
    words_of,
)
from opschema_rules.tileops.migrations.fields import drop_fields, read_value, slots
from opschema_rules.tileops.migrations.param_code import ParamCode
from opschema_rules.tileops.migrations.removals import remove_items, remove_keys
from opschema_rules.tileops.migrations.row_keys import note_quoted_keys
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import parsed, shape_rules, statement


class DropParam(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``param`` lists names, ``op`` ops or patterns of their names; ``value`` is what one parameter is fixed to."""

    param: str
    op: str = ""
    value: str | None = None


@dataclass(frozen=True)
class _Drop:
    """The parameters of one entry that go."""

    entry: OpEntry
    names: tuple[str, ...]


def find(draft: Draft, options: DropParam) -> Iterator[Site]:
    """The entries that declare one of the parameters."""
    wanted = words_of(options.param)
    if not wanted or (options.value is not None and len(wanted) > 1):
        raise OptionError("`param` is one name with a `value`, or a list of names without")
    for entry in named(all_entries(draft), options.op):
        names = tuple(name for name in wanted if entry.param(name) is not None)
        if names:
            found = entry.param(names[0])
            node = found.key if found is not None else entry.key
            title = f"drop {', '.join(f'`{name}`' for name in names)} of `{entry.name}`"
            yield Site(entry.at(node), title, (entry.name,), ("SIG201",), _Drop(entry, names))


@migration("drop-param", find=find, options=DropParam)
def drop_param(draft: Draft, sites: Sequence[Site], options: DropParam) -> Iterator[Note]:
    """Drop parameters: from `signature.params`, from rows, from rules that only constrain them, and from code.

    In code a parameter of `__init__()` or `forward()` goes if the method does not use it and no other op that shares the method
    declares it; then calls no longer pass it. With `-o value=` its uses are folded to that value: in the method, in
    shape rules and in the roofline.

    Where a shape declares a dimension of the same name, that stands for it from then on: rules, formulas and rows keep it.
    A rule that only constrains what other rules name as well stays, and so does that in rows.
    What else uses it is left and noted: rules and formulas that relate it to other names, methods that use it, code that
    reads it from rows.

        opschema migrate drop-param -o op=DropoutOp -o param=N_total,dtype
        opschema migrate drop-param -o op=SoftmaxFwdOp -o param=tune -o value=false
    """
    entries = all_entries(draft)
    drops = [site.subject for site in sites if isinstance(site.subject, _Drop)]
    notes: list[Note] = []
    for drop in drops:
        notes += _rewrite_entry(draft, entries, drop, options)
        notes += (note for name in drop.names for note in note_quoted_keys(draft, [drop.entry], name))
    yield from unique(notes)
    draft.settle()
    folded = read_value(options.value) if options.value is not None else None
    for name in words_of(options.param):
        ops = {drop.entry.name for drop in drops if name in drop.names}
        for chosen in by_manifest(entry for entry in all_entries(draft) if entry.name in ops):
            yield from ParamCode(draft, chosen, name, folded, options.value is not None).rewrite()


def _rewrite_entry(draft: Draft, entries: Sequence[OpEntry], drop: _Drop, options: DropParam) -> Iterator[Note]:
    entry = drop.entry
    gone = [slot for name in drop.names for slot in slots(entry, ("signature", "params", name))]
    yield from drop_fields(draft, entries, gone)
    kept = statement(entry).sizes | _named_by_rules(entry, drop.names)
    for row in entry.rows:
        names = [name for name in drop.names if row.node.pair(name) is not None and name not in kept]
        try:
            draft.edit(entry.file.path, remove_keys(entry.file, row.node, names))
        except YamlEditError as error:
            yield refusal(entry.at(row.node), f"drop `{names[0]}`", error)
    if options.value is not None:
        yield from _fold_texts(draft, entry, drop.names[0], read_value(options.value))
    else:
        yield from _drop_rules(draft, drop)
        yield from _formulas_left(drop)


def _named_by_rules(entry: OpEntry, names: Sequence[str]) -> set[str]:
    """What the rules name that do not go: a row goes on giving them its values."""
    found = ({use.name for use in expression.names()} for _, expression in shape_rules(entry))
    return {name for named_here in found if not named_here <= set(names) for name in named_here}


def _drop_rules(draft: Draft, drop: _Drop) -> Iterator[Note]:
    """Drop the rules that name nothing else; the others are noted unless a shape declares what they name."""
    entry = drop.entry
    owner = entry.get("signature", "shape_rules")
    rules = shape_rules(entry)
    sizes = statement(entry).sizes
    bound = sizes | _named_by_rules(entry, drop.names)
    only = []
    for rule, expression in rules:
        names = {use.name for use in expression.names()}
        if names and names <= set(drop.names) - bound:
            only.append(rule)
        elif left := sorted((names & set(drop.names)) - sizes):
            yield Note(
                entry.at(rule.node), f"this rule of `{entry.name}` names `{left[0]}`, which is no parameter any more"
            )
    try:
        if owner is not None and only and len(only) == len(owner.items):
            above = entry.get("signature")
            if above is not None:
                draft.edit(entry.file.path, remove_key(entry.file, above, "shape_rules"))
        elif owner is not None:
            draft.edit(entry.file.path, remove_items(entry.file, owner, [rule.index for rule in only]))
    except YamlEditError as error:
        yield refusal(entry.place, "drop rules", error)


def _formulas_left(drop: _Drop) -> Iterator[Note]:
    entry, sizes = drop.entry, statement(drop.entry).sizes
    own = {formula.name for formula in formulas(entry) if formula.layer == "vars"}
    for formula in formulas(entry):
        names = {use.name for use in formula.expression.names()} if formula.expression is not None else set()
        left = sorted((names & set(drop.names)) - sizes - (own if formula.layer == "arithmetic" else set()))
        if left:
            text = f"`roofline.{formula.where}` of `{entry.name}` names `{left[0]}`, which is no parameter any more"
            yield Note(entry.at(formula.node), text)


def _fold_texts(draft: Draft, entry: OpEntry, name: str, value: Data) -> Iterator[Note]:
    """Write the value for the parameter in rules and formulas."""
    texts = [(rule.node, rule.text) for rule in entry.shape_rules]
    texts += [(formula.node, formula.text) for formula in formulas(entry)]
    for node, text in texts:
        expression = parsed(text)
        uses = [use.span for use in expression.names() if use.name == name] if expression is not None else []
        if not uses:
            continue
        if isinstance(value, list | dict):
            yield Note(entry.at(node), f"`{name}` is no parameter any more; write {value!r} by hand")
        else:
            yield from _set_text(draft, entry, node, apply_edits(text, [Edit(span, repr(value)) for span in uses]))


def _set_text(draft: Draft, entry: OpEntry, node: Node, text: str) -> Iterator[Note]:
    try:
        draft.edit(entry.file.path, set_value(entry.file, node, text))
    except (YamlEditError, ValueError) as error:
        yield refusal(entry.at(node), f"write `{text}`", error)

"""`rename-input`: renames an input in the signature, in values derived from it, and in code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import occurrences
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import YamlEditError, rename_key, set_value
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.migrations.call_sites import FunctionKey, key_of
from opschema_rules.tileops.migrations.entries import (
    all_entries,
    by_manifest,
    identity,
    is_name,
    named,
    refusal,
    unique,
    without_repeated,
    words_of,
)
from opschema_rules.tileops.migrations.input_code import InputCode, held_back, keep_the_name, old_parameters
from opschema_rules.tileops.migrations.roofline_code import RooflineCode
from opschema_rules.tileops.migrations.row_keys import rename_quoted_keys
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.migrations.tensor_texts import code_like, combo_rows, comments, tensor_texts
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.vocabulary import SHAPE_HELPERS, VARS_HELPERS

_TAKEN = SHAPE_HELPERS | VARS_HELPERS | {"self", "elem_bytes"}
"""Names that mean something else in every method, rule or formula."""


class RenameInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``old`` and ``new`` are the input's names; ``op`` lists ops or patterns of their names (default: all)."""

    old: str
    new: str
    op: str = ""


class _Renaming(msgspec.Struct, frozen=True):
    """Parts of one entry that still have the old name: its nodes, their texts, and parameters of its methods."""

    entry: OpEntry
    keys: tuple[tuple[Node, str, str], ...]
    texts: tuple[tuple[Node, str], ...]

    @property
    def place(self) -> Place:
        """The first place of the old name; the entry's key if only code has it."""
        nodes = [owner.pair(old) for owner, old, _ in self.keys]
        return self.entry.at(next((pair[0] for pair in nodes if pair is not None), self.entry.key))


def find(draft: Draft, options: RenameInput) -> Iterator[Site]:
    """The entries that have the input, or whose rows or methods still have its old name."""
    if not is_name(options.new) or options.new in _TAKEN:
        raise OptionError(f"`{options.new}` is not a name for an input")
    entries = named(all_entries(draft), options.op)
    if not any(entry.input(options.old) or entry.input(options.new) for entry in entries):
        known = sorted({tensor.name for entry in entries for tensor in entry.inputs})
        raise OptionError(
            f"no op that is named has an input `{options.old}`{did_you_mean(near_name(options.old, known))}"
        )
    for entry in entries:
        renaming = _renaming(entry, options)
        if renaming is not None:
            title = f"rename the input `{options.old}` of `{entry.name}` to `{options.new}`"
            yield Site(renaming.place, title, (entry.name,), ("WKL104",), renaming)


def _renaming(entry: OpEntry, options: RenameInput) -> _Renaming | None:
    old, new = options.old, options.new
    tensors = {tensor.name for tensor in entry.tensors} | {param.name for param in entry.params}
    if entry.input(old) is not None:
        if new in tensors:
            if entry.name in words_of(options.op):
                raise OptionError(f"`{entry.name}` declares `{new}` already")
            return _Renaming(entry, (), ())
    elif entry.input(new) is None or old in tensors:
        return None
    keys = tuple(_keys(entry, old, new))
    texts = tuple((item.node, item.renamed(new)) for item in tensor_texts(entry, old))
    code = entry.input(old) is not None or any(
        not keep_the_name(entry.manifest, ref, old) for ref, _ in old_parameters(entry, old, new)
    )
    return _Renaming(entry, keys, texts) if keys or texts or code else None


def _keys(entry: OpEntry, old: str, new: str) -> Iterator[tuple[Node, str, str]]:
    """Yield the mappings that have the old name as a key, with the key and its new name."""
    inputs = entry.get("signature", "inputs")
    for owner in [*([inputs] if inputs is not None else []), *combo_rows(entry)]:
        if owner.pair(old) is not None:
            yield owner, old, new
    for row in entry.rows:
        if row.node.pair(f"{old}_shape") is not None and entry.param(f"{old}_shape") is None:
            yield row.node, f"{old}_shape", f"{new}_shape"


@migration(
    "rename-input",
    find=find,
    options=RenameInput,
    scope=ENTRIES,
    settled="no entry has the input",
    proof=ROWS,
    renames="input",
)
def rename_input(draft: Draft, sites: Sequence[Site], options: RenameInput) -> Iterator[Note]:
    """Rename an input: in its entry, in everything that refers to it, and in code.

    In the manifest: the input, `same_as()` and other dtypes and shapes that refer to it, columns of `dtype_combos`, shape rules,
    static dimensions, the keys `<input>_shape` of workload rows, variables and formulas of the roofline. A dimension or
    roofline variable of the same name keeps it.

    In code: the parameter of `forward()`, `_infer_output_shapes()` (`<input>_shape` there), `_validate_dtypes()` and
    `eval_roofline()`, its uses and its docstring; arguments that calls of the op or of these methods pass by name; the keys
    `"<input>_shape"` that tests and benchmarks read from rows. A shared method is changed if all its ops are renamed, or
    already have the new name. If the code of an op cannot be changed (a method uses the new name already, is defined several
    times or is made at run time), or the op declares the new name, it keeps the old one in the manifest too.

    The function that `roofline.func` names follows if all entries which name it do: its parameters, calls that pass them by
    name, and the keys and attributes that it reads of the op or of a row, unless the op's own code gives them their names.

    Comments and messages are changed if they certainly refer to the input: `` `x` ``, `x.dtype`, a message that begins with
    `x must`, or has `x` directly before a value of it (`f"x: {x_shape}"`).

    An incomplete renaming is completed. Calls that may be affected but cannot be followed, and comments and messages that
    contain the old name are reported as notes.

        opschema migrate rename-input -o op=DropoutOp,FFTC2COp -o old=x -o new=input
    """
    sites, refused_sites = without_repeated(draft, sites)
    yield from refused_sites
    renamings = [site.subject for site in sites if isinstance(site.subject, _Renaming)]
    notes: list[Note] = []
    for entries in by_manifest(renaming.entry for renaming in renamings):
        held = held_back(draft, entries, options.old, options.new)
        for renaming in [item for item in renamings if item.entry in held]:
            text = f"`{renaming.entry.name}` keeps `{options.old}`: {held[renaming.entry]}"
            yield Note(renaming.place, text, leaves_site=True)
        renamings = [item for item in renamings if item.entry not in held]
    for renaming in renamings:
        notes += _rewrite_entry(draft, renaming, options)
    refused: set[FunctionKey] = set()
    for entries in by_manifest(renaming.entry for renaming in renamings):
        code = InputCode(draft, entries, options.old, options.new)
        notes += code.rewrite()
        notes += rename_quoted_keys(draft, entries, f"{options.old}_shape", f"{options.new}_shape")
        refused |= code.refused
    yield from unique(notes)
    for renaming in renamings:
        if any(key_of(ref) in refused for ref, _ in old_parameters(renaming.entry, options.old, options.new)):
            text = f"`{renaming.entry.name}` is renamed in the manifest, and not in all of its code"
            yield Note(renaming.place, text, leaves_site=True)
    draft.settle()
    ops = {identity(renaming.entry) for renaming in renamings}
    for entries in by_manifest(entry for entry in all_entries(draft) if identity(entry) in ops):
        yield from RooflineCode(draft, entries, options.old, options.new).rewrite()
    draft.settle()


def _rewrite_entry(draft: Draft, renaming: _Renaming, options: RenameInput) -> Iterator[Note]:
    entry = renaming.entry
    for owner, old, new in renaming.keys:
        try:
            draft.edit(entry.file.path, rename_key(entry.file, owner, old, new))
        except (YamlEditError, ValueError) as error:
            yield refusal(renaming.place, f"rename `{old}` to `{new}`", error)
    for node, text in renaming.texts:
        try:
            draft.edit(entry.file.path, set_value(entry.file, node, text))
        except (YamlEditError, ValueError) as error:
            yield refusal(renaming.place, f"write `{text}`", error)
    for span in comments(entry):
        yield from _rewrite_comment(draft, entry, span, options)


def _rewrite_comment(draft: Draft, entry: OpEntry, span: Span, options: RenameInput) -> Iterator[Note]:
    """Rename clear mentions; yield a note on a plain word of more than one letter."""
    text = entry.file.source.text[span.start : span.end]
    sure = [*code_like(text, options.old), *occurrences(text, f"{options.old}_shape")]
    for start, _ in sure:
        inner = Span(span.start + start, span.start + start + len(options.old))
        draft.edit(entry.file.path, [Edit(inner, options.new)])
    words = [word for word in occurrences(text, options.old) if word not in sure]
    if words and len(options.old) > 1:
        yield Note(Place(entry.file.path, span), f"the comment says `{options.old}`, which is now `{options.new}`")

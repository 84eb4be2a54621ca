"""`wrap-outputs`: declares the outputs of entries as `pl.Out` or `pl.InOut`, as their specs require."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.phrases import quoted
from opschema_cli.source.text import Edit
from opschema_rules.pypto import proofs
from opschema_rules.pypto.migrations.scopes import SPECS
from opschema_rules.pypto.model import EntryParam, SpecEntry
from opschema_rules.pypto.wrapping import lost, unstaged, wanted, wrap

_CODES = ("PTO110",)


def find(draft: Draft, options: object) -> Iterator[Site]:
    """Yield the parameters whose annotation does not have the direction that their specs require."""
    for entry in _entries(draft):
        for param in entry.params:
            word = wanted(entry, param)
            edit = wrap(entry, param, word) if word is not None else None
            if edit is not None:
                title = f"declare `{param.param.name}` of `{entry.name}` as `{entry.spelled[word or '']}`"
                yield Site(entry.at(param.param.span), title, (entry.name,), _CODES, (entry, edit))


@migration("wrap-outputs", find=find, scope=SPECS, settled="every output is declared as one", proof=proofs.SPECS)
def wrap_outputs(draft: Draft, sites: Sequence[Site], options: object) -> Iterator[Note]:
    """Declare the outputs of entries as `pl.Out` or `pl.InOut`, according to their `TensorSpec`s.

    Only the annotations of parameters that PTO110 reports are changed:

    - a plain `pl.Tensor` whose spec has `is_output=True` becomes `pl.InOut[...]` if a spec gives it an `init_value` or the body
      reads it (`pl.load`, `pl.slice`), and `pl.Out[...]` otherwise;
    - a `pl.Out[...]` whose spec has an `init_value` becomes `pl.InOut[...]`.

    A spec counts for the entry that it is passed with, never for another one with the same parameter name; if a
    `@pl.jit.host` entry only passes a parameter on, it also counts for that function. Left unchanged, with a note, are
    outputs whose initial value is not known, annotations that are aliases, files that do not import `pl`, and entries with
    computed specs.

        opschema migrate wrap-outputs
        opschema migrate wrap-outputs --apply
    """
    edits: dict[str, list[Edit]] = {}
    for site in sites:
        assert isinstance(site.subject, tuple)
        entry, edit = site.subject
        edits.setdefault(entry.file.path, []).append(edit)
    notes = [note for entry in _entries(draft) for note in _notes(entry)]
    for path, changed in edits.items():
        draft.edit(path, changed)
    yield from notes


def _entries(draft: Draft) -> Iterator[SpecEntry]:
    yield from (item for item in draft.loaded.subjects if isinstance(item, SpecEntry))


def _notes(entry: SpecEntry) -> Iterator[Note]:
    for param in entry.params:
        word = wanted(entry, param)
        if (lost(entry, param) or unstaged(param)) and (word is None or wrap(entry, param, word) is None):
            yield Note(entry.at(param.param.span), _reason(entry, param, word))
    unknown = [item.param.name for item in entry.params if item.direction == "in" and not item.specs]
    if unknown and not all(item.whole for item in entry.params):
        names = quoted(unknown[:4]) + (", ..." if len(unknown) > 4 else "")
        yield Note(
            entry.at(entry.span), f"some specs of `{entry.name}` are computed: which of {names} it writes is not known"
        )


def _reason(entry: SpecEntry, param: EntryParam, word: str | None) -> str:
    name = f"`{param.param.name}` of `{entry.name}`"
    if word is None:
        return (
            f"{name} is an output, but whether it has an initial value is not known: declare it `pl.Out` or `pl.InOut`"
        )
    return f"{name} has to be `pl.{word}`, but its annotation is a name, or the file imports no name for that"

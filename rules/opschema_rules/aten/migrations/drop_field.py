"""`drop-entry-field`: one field away from all entries of native_functions.yaml and of backends' YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.migrations.remove_field import lost_comments, remove_field
from opschema_rules.aten.migrations.scopes import FILES
from opschema_rules.aten.model import BackendFile, NativeEntry
from opschema_rules.aten.proofs import RESTORED
from opschema_rules.aten.torchgen_table import newest_torchgen


class DropField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``field`` is the field to remove; ``op`` selects entries by names or shell patterns, ``value`` those with that value of
    the field.
    """

    field: str
    op: list[str] = []
    value: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    """A mapping with ``func``: of native_functions.yaml, or an item of one of a backend's lists."""

    file: YamlFile
    name: str
    node: Node


def find(draft: Draft, options: DropField) -> Iterator[Site]:
    """The entries that have the field."""
    entries = list(_entries(draft))
    _check(draft, entries, options)
    for entry in entries:
        pair = entry.node.pair(options.field)
        chosen = not options.op or any(fnmatchcase(entry.name, pattern) for pattern in options.op)
        if pair is not None and chosen and options.value in (None, _written(entry.file, pair[1])):
            place = Place(entry.file.path, Span(pair[0].start, max(pair[0].end, pair[1].end)))
            yield Site(place, f"drop `{options.field}` of `{entry.name}`", (entry.name,), subject=entry)


@migration(
    "drop-entry-field", find=find, options=DropField, scope=FILES, settled="no entry has the field", proof=RESTORED
)
def drop_field(draft: Draft, sites: Sequence[Site], options: DropField) -> Iterator[Note]:
    """Drop a field from all entries of native_functions.yaml, and of lists of schemas in a backend's YAML.

    The field is removed with all of its lines and the comments directly above it or, further indented, below; these are
    reported as notes. With `-o value=` it is removed only if it has that value, as written. A field that is written twice,
    or has an anchor that is used elsewhere, is kept, with a note. If no entry has the field any more, notes list code that
    still reads it and documents that mention it, one place for each file.

        opschema migrate drop-entry-field -o field=use_c10_dispatcher
        opschema migrate drop-entry-field -o field=variants -o value=function
    """
    for site in sites:
        entry = site.subject
        if isinstance(entry, _Entry):
            try:
                edits = remove_field(entry.file, entry.node, options.field)
            except (YamlEditError, ValueError) as error:
                yield Note(site.place, f"drop `{options.field}` by hand: {error}", leaves_site=True)
                continue
            draft.edit(entry.file.path, edits)
            for comment in lost_comments(entry.file, edits):
                place = Place(entry.file.path, Span(entry.node.start, entry.node.start))
                yield Note(place, f"a comment went with `{options.field}` of `{entry.name}`: `{comment}`")
    draft.settle()
    if all(entry.node.get(options.field) is None for entry in _entries(draft)):
        yield from _readers(draft, options.field)


def _entries(draft: Draft) -> Iterator[_Entry]:
    for item in draft.loaded.subjects:
        if isinstance(item, NativeEntry):
            yield _Entry(item.file, item.name, item.node)
        elif isinstance(item, BackendFile):
            found = (listed for listed in item.items if listed.node.get("func") is not None)
            yield from (_Entry(item.file, listed.name, listed.node) for listed in found)


def _check(draft: Draft, entries: Sequence[_Entry], options: DropField) -> None:
    """Refuse fields that no entry can do without, and misspelt ones.

    Raises:
        OptionError: naming the option.
    """
    if options.field == "func":
        raise OptionError("-o field=func: every entry needs it")
    if not entries or draft.changes:
        return
    present = {key.value for entry in entries for key, _ in entry.node.pairs() if key.kind == "scalar"}
    known = present | newest_torchgen().vocabulary.fields
    meant = did_you_mean(nearest(options.field, known)) if options.field not in known else ""
    if meant:
        raise OptionError(f"-o field={options.field}: no entry has it{meant}")
    for pattern in options.op:
        if not any(fnmatchcase(entry.name, pattern) for entry in entries):
            raise OptionError(
                f"-o op={pattern}: there is no such entry{did_you_mean(nearest(pattern, {entry.name for entry in entries}))}"
            )


def _written(file: YamlFile, node: Node) -> str:
    """Return a scalar's text, or a collection as written."""
    return node.value if node.kind == "scalar" else file.source.text[node.start : node.end]


def _readers(draft: Draft, name: str) -> Iterator[Note]:
    """Code with the field's name as a string, and documents that mention it; the first place of each file."""
    word = re.escape(name)
    patterns = {".py": re.compile(rf"(?<=[\"']){word}(?=[\"'])"), ".md": re.compile(rf"(?<!\w){word}(?!\w)")}
    for source in texts_with(draft.project, [name]):
        pattern = next((found for ending, found in patterns.items() if source.path.endswith(ending)), None)
        match = pattern.search(source.text) if pattern is not None else None
        if match is not None:
            yield Note(Place(source.path, Span(*match.span())), f"this names `{name}`, which no entry has any more")

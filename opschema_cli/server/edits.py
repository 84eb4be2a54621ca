"""Edits of the engine as edits of the protocol, for the versions of the texts that they were made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

from lsprotocol import types

from opschema_cli.server.findings import Converter
from opschema_cli.source.text import Edit, Source, Span


def workspace_edit(
    converter: Converter, edits: Mapping[str, Iterable[Edit]], versions: Mapping[str, int]
) -> types.WorkspaceEdit | None:
    """Edits by the paths of their files; ``versions`` are those of open texts, by address. None if a file cannot be read."""
    changes: list[types.TextDocumentEdit] = []
    for path, found in sorted(edits.items()):
        source = converter.source_of(path)
        if source is None:
            return None
        uri = converter.uri_of(path)
        document = types.OptionalVersionedTextDocumentIdentifier(uri, versions.get(uri))
        changes.append(types.TextDocumentEdit(document, [converter.edit(source, edit) for edit in sorted(found)]))
    return types.WorkspaceEdit(document_changes=changes)


def difference(source: Source, text: str) -> list[Edit]:
    """Return the edits of entire lines that turn one text into another."""
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    return [
        Edit(Span(starts[first], starts[last]), "".join(after[begin:end]))
        for kind, first, last, begin, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if kind != "equal"
    ]

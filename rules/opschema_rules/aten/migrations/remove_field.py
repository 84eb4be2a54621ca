"""Taking a field out of an entry, and telling which comments go with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_edit import remove_key

_SHOWN = 60
"""The number of characters of a comment to show in a note."""

_BREAK = r"[ \t]*(?:\r\n|\r(?!\n)|\n)"
_APART = re.compile(rf"{_BREAK}(?={_BREAK}\s*#)")


def remove_field(file: YamlFile, entry: Node, name: str) -> list[Edit]:
    """Remove a field and the comments that belong to it; those that a blank line parts from it stay.

    Raises:
        YamlEditError: as for :func:`opschema_cli.source.yaml_edit.remove_key`.
    """
    edits = remove_key(file, entry, name)
    pair = entry.pair(name)
    end = max(node.end for node in pair) if pair is not None else entry.end
    return [_spared(file.source.text, edit, end) for edit in edits]


def _spared(text: str, edit: Edit, end: int) -> Edit:
    """Return an edit that ends before comments separate from the part that ends at ``end``."""
    apart = _APART.search(text, max(end, edit.span.start), edit.span.end)
    if apart is None or edit.span.start > end:
        return edit
    return Edit(Span(edit.span.start, apart.end()), edit.replacement)


def lost_comments(file: YamlFile, edits: Iterable[Edit]) -> Iterator[str]:
    """Yield the first line of each comment, on lines of its own, that edits remove."""
    for edit in edits:
        above = False
        for line in file.source.text[edit.span.start : edit.span.end].splitlines():
            text = line.strip()
            if text.startswith("#") and not above and text not in edit.replacement:
                yield text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            above = text.startswith("#")

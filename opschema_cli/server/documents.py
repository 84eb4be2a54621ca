"""The texts that are open in the editor.

pygls keeps texts, too, but takes form feeds and other separators of Unicode for ends of lines, which the protocol does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from lsprotocol import types

from opschema_cli.server.positions import Encoding, span_of
from opschema_cli.source.text import Source


class Document(msgspec.Struct, frozen=True):
    """An open text and its version."""

    uri: str
    version: int
    text: str


def changed(
    document: Document, version: int, changes: Sequence[types.TextDocumentContentChangeEvent], encoding: Encoding
) -> Document:
    """A document after a series of changes, each applied to the result of the one before."""
    text = document.text
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = span_of(Source(document.uri, text), change.range, encoding)
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return Document(document.uri, version, text)

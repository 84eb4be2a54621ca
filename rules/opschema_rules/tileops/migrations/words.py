"""Identifiers in any text of a tree: code, strings, comments, documents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from opschema_cli.migrate.draft import Draft
from opschema_cli.source.text import Source, Span
from opschema_cli.workspace import ReadError

EDITED = (".py", ".pyi", ".yaml", ".yml", ".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".sh")
"""Endings of files whose text may be rewritten; others (results, notebooks) are only reported."""

_HISTORY = re.compile(r"(?:^|/)(?:CHANGELOG|CHANGES|HISTORY|NEWS|RELEASE\w*)(?:[-_.][^/]*)?$", re.IGNORECASE)


def occurrences(text: str, word: str) -> Iterator[Span]:
    """Where a text has ``word`` as a whole identifier."""
    for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text):
        yield Span(*match.span())


def longer_names(text: str, word: str) -> Iterator[tuple[Span, str]]:
    """The identifiers in a text that hold ``word`` and more."""
    for match in re.finditer(rf"\w*{re.escape(word)}\w*", text):
        if match.group() != word:
            yield Span(*match.span()), match.group()


def is_history(path: str) -> bool:
    """Whether a file tells what was: it is not rewritten."""
    return _HISTORY.search(path) is not None


def texts_with(draft: Draft, word: str) -> Iterator[Source]:
    """The files of the draft whose text has ``word``, in or as an identifier; what cannot be read is left out."""
    encoded = word.encode("utf-8", "surrogatepass")
    for path in draft.project.workspace.files:
        if encoded in _data(draft, path):
            source = draft.project.source(path)
            if source is not None:
                yield source


def paths_with_any(draft: Draft, words: Collection[str]) -> list[str]:
    """The Python files whose text has one of the words as a whole identifier, sorted."""
    found = (source for word in words for source in texts_with(draft, word) if source.path.endswith(".py"))
    return sorted({source.path for source in found if any(any(occurrences(source.text, word)) for word in words)})


def _data(draft: Draft, path: str) -> bytes:
    try:
        return draft.project.workspace.data(path)
    except ReadError:
        return b""

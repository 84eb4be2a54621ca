"""Identifiers in any text of a tree: code, strings, comments, documents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from opschema_cli.migrate.draft import Draft
from opschema_cli.source.text import Span

PYTHON = (".py", ".pyi")
EDITED = (*PYTHON, ".yaml", ".yml", ".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".sh")
"""Endings of files whose text may be rewritten; others (results, notebooks) are only reported."""

_IDENTIFIER = re.compile(r"\w+")
_HISTORY = re.compile(r"(?:^|/)(?:CHANGELOG|CHANGES|HISTORY|NEWS|RELEASE\w*)(?:[-_.][^/]*)?$", re.IGNORECASE)


def longer_names(text: str, word: str) -> Iterator[tuple[Span, str]]:
    """The identifiers in a text that hold ``word`` and more."""
    at = text.find(word)
    while at >= 0:
        start, end = at, at + len(word)
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        if end - start > len(word):
            yield Span(start, end), text[start:end]
        at = text.find(word, end)


def is_history(path: str) -> bool:
    """Whether a file records history: it is not rewritten."""
    return _HISTORY.search(path) is not None


def has_any(text: str, words: Collection[str]) -> bool:
    """Whether a text contains one of the words as an identifier."""
    return any(match.group() in words for match in _IDENTIFIER.finditer(text))


def paths_with_any(draft: Draft, words: Collection[str]) -> list[str]:
    """Return the Python files whose text contains one of the words as an identifier."""
    found = (draft.project.source(path) for path in draft.project.workspace.files if path.endswith(".py"))
    return [source.path for source in found if source is not None and has_any(source.text, words)]

"""Import statements, found in the text of a Python file without parsing it: which files may lead to a module."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FROM = re.compile(r"from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n#;(]*)")
_IMPORT = re.compile(r"import[ \t]+([^\n#;(]*)")


def import_statements(text: str) -> Iterator[tuple[str, str]]:
    """The statements that begin a line, in linear time: the module of a ``from`` with its leading dots, empty for a plain
    ``import``, and what is imported, as written. Lines of a docstring may look the same.
    """
    last = text.rfind(")")
    closing = -1
    for found in _at_line_starts("from", _FROM, text):
        names, end = found[2], found.end()
        if not names and end < last and text[end] == "(":
            closing = closing if closing > end else text.index(")", end)
            following = text.find("\nfrom ", end, closing)  # a list that is not closed ends where the next one begins
            names = text[end : following if following >= 0 else closing + 1]
        yield found[1], names
    for found in _at_line_starts("import", _IMPORT, text):
        yield "", found[1]


def _at_line_starts(word: str, pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern at each place of a word before which nothing but white space stands on its line; a plain word is
    found many times as fast as a pattern.
    """
    at = text.find(word)
    while at >= 0:
        start = at
        while start and text[start - 1] in " \t":
            start -= 1
        match = pattern.match(text, at) if not start or text[start - 1] == "\n" else None
        if match is not None:
            yield match
        at = text.find(word, match.end() if match is not None else at + len(word))

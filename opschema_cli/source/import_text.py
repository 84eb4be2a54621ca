"""Finds import statements in the text of a Python file without parsing it: the files that may lead to a module."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FROM = re.compile(r"from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n#;(]*)")
_IMPORT = re.compile(r"import[ \t]+([^\n#;(]*)")


def import_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines with the word ``import``: the start of each line, and the first place of the word. Searching for a plain
    word is many times faster than for a pattern.
    """
    at = text.find("import")
    while at >= 0:
        yield text.rfind("\n", 0, at) + 1, at
        line = text.find("\n", at)
        at = text.find("import", line) if line >= 0 else -1


def import_statements(text: str) -> Iterator[tuple[str, str]]:
    """Yield the statements that begin a line, in order and linear time: the module of a ``from`` with its leading dots (empty
    for a plain ``import``), and the imported names as written. Lines of a docstring may look the same.
    """
    last = text.rfind(")")
    closing = -1
    for start, at in import_lines(text):
        word = start
        while text[word] in " \t":
            word += 1
        if word == at:
            plain = _IMPORT.match(text, at)
            if plain is not None:
                yield "", plain[1]
        elif (found := _FROM.match(text, word)) is not None:
            names, end = found[2], found.end()
            if not names and end < last and text[end] == "(":
                closing = closing if closing > end else text.index(")", end)
                # A list that is not closed ends where the next one begins.
                following = text.find("\nfrom ", end, closing)
                names = text[end : following if following >= 0 else closing + 1]
            yield found[1], names

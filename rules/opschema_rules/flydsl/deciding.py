"""Parameters by which a function may decide in Python, found by its text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

from opschema_cli.source.python import Function, Param

_WORD = re.compile(r"[A-Za-z_]\w*")
_DECIDING = re.compile(r"\b(?:if|while|assert|range)\b([^\n]*)")


def deciding(text: str, params: Iterable[Param]) -> set[str]:
    """The parameters that stand behind a word by which Python may decide."""
    said = {word for match in _DECIDING.finditer(text) for word in _WORD.findall(match[1])}
    return {item.name for item in params if item.name in said}


class Decisions:
    """The lines of a file that hold such a word, found once for all its functions, which nest."""

    def __init__(self, text: str) -> None:
        found = [(match.start(), frozenset(_WORD.findall(match[1]))) for match in _DECIDING.finditer(text)]
        self._starts = [start for start, _ in found]
        self._words = [words for _, words in found]

    def may_decide(self, function: Function) -> bool:
        """Whether a parameter of a function stands in one of its lines."""
        first, last = (bisect_left(self._starts, place) for place in function.outer)
        names = {item.name for item in function.params}
        return any(not names.isdisjoint(words) for words in self._words[first:last])

"""Parameters by which a function may decide in Python, found by its text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from opschema_cli.source.python import Function, Param

_WORD = re.compile(r"[A-Za-z_]\w*")
_DECIDING = re.compile(r"\b(?:if|while|assert|range)\b([^\n]*)")
_EACH = [re.compile(rf"{word}\b") for word in ("if", "while", "assert", "range")]


def deciding(text: str, params: Iterable[Param]) -> set[str]:
    """Return the parameters that follow a word by which Python may decide."""
    said = {word for match in _DECIDING.finditer(text) for word in _WORD.findall(match[1])}
    return {item.name for item in params if item.name in said}


class Decisions:
    """The lines of a file that contain such a word, found once for all of its nested functions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = list(_first_of_lines(text))
        self._words: dict[int, frozenset[str]] = {}

    def may_decide(self, function: Function) -> bool:
        """Whether one of these lines in a function contains one of its parameters."""
        names = {item.name for item in function.params}
        first, last = (bisect_left(self._starts, place) for place in function.outer) if names else (0, 0)
        return any(not names.isdisjoint(self._words_behind(start)) for start in self._starts[first:last])

    def _words_behind(self, start: int) -> frozenset[str]:
        """Return the words between such a word and the end of its line."""
        if start not in self._words:
            match = _DECIDING.match(self._text, start)
            self._words[start] = frozenset(_WORD.findall(match[1])) if match is not None else frozenset()
        return self._words[start]


def _first_of_lines(text: str) -> Iterator[int]:
    """Yield the place of the first such word of each line. Searching for one word at a time is several times faster than for all at
    once: a pattern with a constant prefix is searched for like a string.
    """
    matches = (match.start() for pattern in _EACH for match in pattern.finditer(text))
    end = -1
    for start in sorted(start for start in matches if not is_in_word(text, start)):
        if start > end:
            yield start
            end = text.find("\n", start)
            if end < 0:
                return


def is_in_word(text: str, start: int) -> bool:
    """Whether a place in a text is inside or at the end of a word."""
    before = text[start - 1 : start]
    return before == "_" or before.isalnum()

"""CMake commands that change or compute words: ``list``, ``string`` and ``get_filename_component``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

from opschema_cli.source.cmake.conditions import Origin
from opschema_cli.source.cmake.scopes import UNKNOWN, Values

_PATTERN = re.compile(r"(?P<start>\^)?(?P<any>\.[*+])?(?P<text>(?:[\w/-]|\\+[^\\])*)(?P<more>\.[*+])?(?P<end>\$)?")


def filtered(values: Values, *, includes: bool, pattern: str, surely: bool) -> Values:
    """Return the words that ``list(FILTER)`` keeps; if it may not run, the words that it removes have an unknown origin."""
    matches = _matcher(pattern)
    if matches is None:
        return doubtful(values)
    stays = {word: word == UNKNOWN or matches(word) == includes for word in values}
    return {word: origin if stays[word] else None for word, origin in values.items() if stays[word] or not surely}


def _matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return a predicate for the simple regular expressions that are used to filter lists of files."""
    found = _PATTERN.fullmatch(pattern)
    if found is None:
        return None
    text = re.sub(r"\\+", "", found["text"])
    begins = found["start"] is not None and found["any"] is None
    ends = found["end"] is not None and found["more"] is None
    least = sum(found[name] is not None and found[name].endswith("+") for name in ("any", "more"))

    def matches(word: str) -> bool:
        if begins and ends:
            return word == text
        if begins:
            return word.startswith(text)
        return word.endswith(text) and len(word) >= len(text) + least if ends else text in word

    return matches


def without(values: Values, removed: Iterable[str]) -> Values:
    """Return a list from which some words may have been removed."""
    words = set(removed)
    return {word: None if word in words else origin for word, origin in values.items()}


def doubtful(values: Values) -> Values:
    """Return a list from which any word may have been removed, and to which others may have been added."""
    return {**dict.fromkeys(values), UNKNOWN: None}


def mapped(values: Values, before: str, after: str) -> Values:
    """Return a list with texts before and after every word; unknown words stay unknown."""
    found: dict[str, Origin] = {}
    for word, origin in values.items():
        found.setdefault(f"{before}{word}{after}" if word != UNKNOWN else UNKNOWN, origin)
    return found


STRINGS: dict[str, Callable[[str], str]] = {"TOLOWER": str.lower, "TOUPPER": str.upper, "STRIP": str.strip}
"""The supported operations of ``string`` on one word."""

FILE_PARTS: dict[str, Callable[[str], str]] = {
    "NAME": posixpath.basename,
    "NAME_WE": lambda path: posixpath.basename(path).split(".")[0],
    "NAME_WLE": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "DIRECTORY": posixpath.dirname,
    "PATH": posixpath.dirname,
    "ABSOLUTE": str,
    "REALPATH": str,
}
"""Parts of a path by the mode of ``get_filename_component``."""

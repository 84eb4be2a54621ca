"""Includes of a program's C++: the runtime's headers and the standard library's, and others, which may hold anything."""

from __future__ import annotations

import re

_INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*(?:include(?:_next)?|import)\b[ \t]*("[^"\n]*"|<[^>\n]*>|.*)')
_RUNTIME = re.compile(r'["<](pto/[\w/.-]+|(?:tensor|intrinsic|pipe_sync|pto\w*)\.h)[">]')
_STANDARD = re.compile(r"<(?:[a-z_]+|(?:assert|inttypes|limits|math|stdbool|stddef|stdint|stdio|stdlib|string)\.h)>")


def includes_others(text: str) -> bool:
    """Whether a file includes code that is neither the runtime's nor the standard library's."""
    return any(not _RUNTIME.fullmatch(item) and not _STANDARD.fullmatch(item) for item in _INCLUDE.findall(text))


def headers_of(text: str) -> set[str]:
    """The headers that a file includes and that have names of the runtime's."""
    return {match[1] for item in _INCLUDE.findall(text) if (match := _RUNTIME.fullmatch(item)) is not None}

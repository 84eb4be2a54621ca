"""Includes of a program's C++ files: headers of the runtime and the standard library, and others, which may contain anything."""

from __future__ import annotations

import re

from opschema_cli.source.cpp_text import without_comments

_INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*(?:include(?:_next)?|import)\b[ \t]*("[^"\n]*"|<[^>\n]*>|.*)')
_RUNTIME = re.compile(r'["<](pto/[\w/.-]+|(?:tensor|intrinsic|pipe_sync|platform_comm/\w+|pto\w*)\.h)[">]')
_STANDARD = re.compile(
    r"<(?:algorithm|array|atomic|bit|bitset|chrono|climits|cmath|complex|condition_variable|deque|exception|functional|future"
    r"|initializer_list|iomanip|ios|iostream|iterator|limits|list|map|memory|mutex|new|numeric|optional|ostream|queue|random|ratio"
    r"|set|span|sstream|stack|stdexcept|string|string_view|thread|tuple|type_traits|typeinfo|unordered_map|unordered_set|utility"
    r"|variant|vector|c(?:assert|ctype|errno|float|inttypes|limits|stdarg|stddef|stdint|stdio|stdlib|string|time)"
    r"|(?:assert|inttypes|limits|math|stdbool|stddef|stdint|stdio|stdlib|string)\.h)>"
)
_CONTINUED = re.compile(r"\\\r?\n")


def includes_others(text: str) -> bool:
    """Whether a file includes code that belongs to neither the runtime nor the standard library."""
    return any(not _RUNTIME.fullmatch(item) and not _STANDARD.fullmatch(item) for item in _included(text))


def headers_of(text: str) -> set[str]:
    """Return the included headers that have names of the runtime's headers."""
    return {match[1] for item in _included(text) if (match := _RUNTIME.fullmatch(item)) is not None}


def _included(text: str) -> list[str]:
    found: list[str] = _INCLUDE.findall(logical_lines(text))
    return found


def logical_lines(text: str) -> str:
    """Return a text as the preprocessor reads it: without comments and with continued lines joined."""
    return _CONTINUED.sub("", without_comments(text))

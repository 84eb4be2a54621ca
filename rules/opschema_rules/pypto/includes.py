"""Includes of a program's C++: the runtime's headers and the standard library's, and others, which may hold anything."""

from __future__ import annotations

import re

_INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include\b[ \t]*("[^"\n]*"|<[^>\n]*>|.*)')
_KNOWN = re.compile(
    r'["<](?:pto/[\w/.-]+|(?:tensor|intrinsic|pipe_sync|pto\w*)\.h)[">]'
    r"|<(?:[a-z_]+|(?:assert|inttypes|limits|math|stdbool|stddef|stdint|stdio|stdlib|string)\.h)>"
)


def includes_others(text: str) -> bool:
    """Whether a file includes code that is neither the runtime's nor the standard library's."""
    return any(_KNOWN.fullmatch(item) is None for item in _INCLUDE.findall(text))

"""Finds mapping keys in YAML-like text without parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator


class LineKeys:
    """The lines of a text that begin with one of some keys. The text before the key matches ``before``, which matches no letter,
    and the text after it matches ``after``.

    The keys are searched for first. A pattern that begins with a constant is many times faster than one with the start of a
    line: that one is tried on each line of files of many megabytes.
    """

    def __init__(self, *keys: bytes, before: bytes = rb"[ \t]*", after: bytes = rb"[ \t]*:") -> None:
        self._patterns = {key: re.compile(re.escape(key) + after) for key in keys}
        self._before = re.compile(before)

    def matches(self, data: bytes) -> Iterator[re.Match[bytes]]:
        """Yield the keys with the following text; the lines of each key in order, one key after another."""
        for key, pattern in self._patterns.items():
            if key in data:
                yield from self._of_one(pattern, data)

    def _of_one(self, pattern: re.Pattern[bytes], data: bytes) -> Iterator[re.Match[bytes]]:
        searched = 0
        while (match := pattern.search(data, searched)) is not None:
            line = data.rfind(b"\n", searched, match.start()) + 1 or searched
            if self._before.fullmatch(data, line, match.start()) is not None:
                yield match
            # If this is not the first word of its line, no further one is.
            searched = data.find(b"\n", match.end()) + 1 or len(data)

    def found(self, data: bytes) -> bool:
        """Whether there is such a line."""
        return next(self.matches(data), None) is not None

    def count(self, data: bytes) -> int:
        """The number of such lines."""
        return sum(1 for _ in self.matches(data))

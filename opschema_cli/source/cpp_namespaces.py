"""Namespaces of a C++ text by its braces, for places that the parser does not understand: an error there ends a namespace early."""

from __future__ import annotations

import re
from bisect import bisect_right

from opschema_cli.source.cpp_text import only_code

_BRACE = re.compile(r"\bnamespace\s+(?P<name>[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)?\s*(?P<opens>\{)|[{}]")


def may_mean(qualifier: str, owner: str) -> bool:
    """Whether ``qualifier::f`` may be a function ``f`` of a namespace or class: it is empty, or the last parts of its name."""
    return not qualifier or f"::{owner}".endswith(f"::{qualifier}")


def is_within(namespace: str, outer: str) -> bool:
    """Whether a namespace is another one, or inside of it."""
    return not outer or f"{namespace}::".startswith(f"{outer}::")


MAX_DEPTH = 200
"""Deepest nesting of braces; of a deeper text the namespaces are not known."""


class Namespaces:
    """The namespaces around the places of a text; not known if its braces do not pair, as with both sides of an ``#if``."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        self._names = [("", True, False)]
        stack = [("", True, False)]
        self.known = False
        for token in _BRACE.finditer(only_code(text, directives=False)):
            around, _, unnamed = stack[-1]
            if token["opens"]:
                name = re.sub(r"\s+", "", token["name"] or "")
                full = f"{around}::{name}" if around and name else around or name
                stack.append((full, True, unnamed or not name))
            elif token[0] == "{":
                stack.append((around, False, unnamed))
            else:
                stack.pop()
            if not stack or len(stack) > MAX_DEPTH:
                return
            self._starts.append(token.end())
            self._names.append(stack[-1])
        self.known = len(stack) == 1

    def at(self, place: int) -> str:
        """The namespace around a place, as ``a::b``; empty outside of any, and where it is not known."""
        return self._around(place)[0] if self.known else ""

    def declares(self, place: int) -> bool:
        """Whether a function may be declared at a place: outside of functions, classes and initialisers, or not known."""
        return not self.known or self._around(place)[1]

    def is_unnamed(self, place: int) -> bool:
        """Whether a place is in a namespace without a name, so that what it declares is not seen by other files."""
        return self.known and self._around(place)[2]

    def _around(self, place: int) -> tuple[str, bool, bool]:
        return self._names[bisect_right(self._starts, place) - 1]

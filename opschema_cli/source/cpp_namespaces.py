"""Namespaces of a C++ text by its braces, for text that the parser does not understand: an error in it ends a namespace early."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.preprocessor import Condition, Directives, read_directives

_BRACE = re.compile(
    r"n(?<!\wn)amespace\s+(?P<name>[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)?\s*(?P<opens>\{)"
    r"|e(?<!\we)xtern\s+(?P<links>\{)|[{}]"
)
"""All alternatives begin with one of four characters, as in :mod:`opschema_cli.source.cpp_text`."""
_LINKAGE = re.compile(r"""\bextern\s*"(C|C\+\+)"\s*\Z""")
_CPLUSPLUS = Condition("defined(__cplusplus)")
_BEFORE = 40
"""Maximum number of characters before a place to search for its linkage."""


def may_mean(qualifier: str, owner: str) -> bool:
    """Whether ``qualifier::f`` may be a function ``f`` of a namespace or class: the qualifier is empty, or the last parts of its
    name.
    """
    return not qualifier or f"::{owner}".endswith(f"::{qualifier}")


def is_within(namespace: str, outer: str) -> bool:
    """Whether a namespace is another one, or nested in it."""
    return not outer or f"{namespace}::".startswith(f"{outer}::")


MAX_DEPTH = 200
"""Maximum nesting of braces; the namespaces of a deeper text are unknown."""


class _Scope(NamedTuple):
    """The namespace around a place; whether functions may be declared there, and whether it is unnamed; and the place of the
    enclosing ``extern "C"``, if there is one.
    """

    name: str = ""
    declares: bool = True
    unnamed: bool = False
    of_c: int | None = None


class Namespaces:
    """The namespaces around the places of a text; unknown if its braces do not pair, for example with both branches of an
    ``#if``.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0]
        self._scopes = [_Scope()]
        stack = [_Scope()]
        self.known = False
        self._code = only_code(text, directives=False)
        for token in _BRACE.finditer(self._code):
            around = stack[-1]
            if token["opens"]:
                name = re.sub(r"\s+", "", token["name"] or "")
                full = f"{around.name}::{name}" if around.name and name else around.name or name
                stack.append(_Scope(full, True, around.unnamed or not name, around.of_c))
            elif token["links"]:
                of_c = '"C"' in text[token.start() : token.end()]
                stack.append(around._replace(of_c=token.start() if of_c else None))
            elif token[0] == "{":
                stack.append(around._replace(declares=False))
            else:
                stack.pop()
            if not stack or len(stack) > MAX_DEPTH:
                return
            self._starts.append(token.end())
            self._scopes.append(stack[-1])
        self.known = len(stack) == 1

    def at(self, place: int) -> str:
        """Return the namespace around a place, such as ``a::b``; empty outside of any, and if it is not known."""
        return self._around(place).name if self.known else ""

    def declares(self, place: int) -> bool:
        """Whether a function may be declared at a place: outside of functions, classes and initializers, or if that is not
        known.
        """
        return not self.known or self._around(place).declares

    def is_unnamed(self, place: int) -> bool:
        """Whether a place is in an unnamed namespace, so that its declarations are invisible to other files."""
        return self.known and self._around(place).unnamed

    def is_of_c(self, place: int) -> bool:
        """Whether a function declared from a place on is known to have C linkage: its name has no namespace."""
        own = _LINKAGE.search(self._text, max(0, place - _BEFORE), place)
        if own is not None and self._code.startswith("extern", own.start()):
            return own[1] == "C"
        block = self._around(place).of_c if self.known else None
        return block is not None and self._holds_with(block, place)

    def _holds_with(self, block: int, place: int) -> bool:
        """Whether the code that opens a block is compiled as C++ together with a place in it."""
        conditions = self._directives.conditions
        return set(conditions(block)) <= {*conditions(place), _CPLUSPLUS}

    @cached_property
    def _directives(self) -> Directives:
        return read_directives(self._text)

    def _around(self, place: int) -> _Scope:
        return self._scopes[bisect_right(self._starts, place) - 1]

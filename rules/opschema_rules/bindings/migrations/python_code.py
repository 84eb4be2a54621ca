"""C++ that uses Python by pybind11, nanobind or the C API. The kernel of an operator cannot: it runs without the GIL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_LIBRARY = r"(?:::\s*)?(?:py|pybind11|nb|nanobind)\b"
_ALIAS = re.compile(rf"\bnamespace\s+(\w+)\s*=\s*{_LIBRARY}")
_BROUGHT = re.compile(rf"\busing\s+{_LIBRARY}\s*::\s*(\w+)\s*;|\busing\s+(\w+)\s*=\s*{_LIBRARY}")
_ALL_BROUGHT = re.compile(rf"\busing\s+namespace\s+{_LIBRARY}\s*;")
_TYPES = {"object", "handle", "list", "dict", "set", "tuple", "str", "bytes", "function", "iterable", "buffer", "cast"}
"""The most used names of the libraries, which ``using namespace pybind11;`` makes available."""

_MENTION = re.compile(rb"\b(?:py|pybind11|nb|nanobind)\s*(?:::|;)|\bgil_scoped_|\bPy")
_CLASS = r"\b(?:class|struct)\s+(?:\w+\s+)?(?P<name>\w+)\s*(?:final\s*)?(?::[^;{}()]{0,300})?\{"
_DEPTH = 20
"""Maximum nesting of braces between a class and a use of Python in it."""


def mentions_python(data: bytes) -> bool:
    """Whether a C++ file may use Python."""
    return _MENTION.search(data) is not None


class PythonCode:
    """Finds uses of Python in code of a tree. ``codes`` are its files that may use Python, without comments and literals."""

    def __init__(self, codes: Iterable[str]) -> None:
        codes = list(codes)
        self._spaces = {name for code in codes for name in _ALIAS.findall(code)}
        names = {name for code in codes for pair in _BROUGHT.findall(code) for name in pair if name}
        if any(_ALL_BROUGHT.search(code) for code in codes):
            names |= _TYPES
        self._use = self._uses_of(names)
        self._use = self._uses_of(names.union(*map(self._classes, codes)))
        self._known: dict[str, str] = {}

    def first_use(self, body: str) -> str:
        """Return the first use of Python in the code of a function; empty if there is none."""
        if body not in self._known:
            match = self._use.search(body)
            self._known[body] = re.sub(r"\s+", "", match[0]) if match is not None else ""
        return self._known[body]

    def _uses_of(self, names: Iterable[str]) -> re.Pattern[str]:
        """Return a pattern of uses of the libraries and of some types."""
        space = "|".join(sorted({"py", "pybind11", "nb", "nanobind", *self._spaces}))
        name = "|".join(sorted({"gil_scoped_release", "gil_scoped_acquire", *names}))
        return re.compile(
            rf"(?<![\w.])(?<!->)(?:(?:{space})\s*::\s*\w+|(?<!::)(?:{name})(?=\s+[A-Za-z_]|\s*[({{<>])"
            r"|Py_\w+|PyObject\b|(?!PyTorch)Py[A-Z][A-Za-z]{0,40}_[A-Z]\w*|THP[A-Z]\w{0,60}_\w+)"
        )

    def _classes(self, code: str) -> Iterator[str]:
        """Yield the classes of a file that use Python, such as one that releases the GIL while an object of it lives."""
        around: list[str] = []
        for match in re.finditer(rf"{_CLASS}|[{{}}]|(?P<use>{self._use.pattern})", code):
            if match["use"]:
                yield from filter(None, around[-_DEPTH:])
            elif match[0] != "}":
                around.append(match["name"] or "")
            elif around:
                around.pop()

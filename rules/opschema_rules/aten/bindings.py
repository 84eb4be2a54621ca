"""Operators that get Python bindings, and types that these can return."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec


class Bindings(msgspec.Struct, frozen=True):
    """``skipped`` are patterns of the C++ names of operators without a binding, ``returned`` the types that a binding can
    return.
    """

    skipped: frozenset[str] = frozenset()
    returned: frozenset[str] = frozenset()

    @staticmethod
    def joined(parts: Iterable[Bindings]) -> Bindings:
        """The exceptions of several modules together."""
        found = list(parts)
        return Bindings(
            frozenset[str]().union(*(item.skipped for item in found)),
            frozenset[str]().union(*(item.returned for item in found)),
        )

    @property
    def known(self) -> bool:
        """Whether both are known."""
        return bool(self.skipped) and bool(self.returned)

    def skips(self, name: str) -> bool:
        """Whether the operator with this C++ name gets no binding."""
        return name in self.skipped or _pattern(self.skipped).fullmatch(name) is not None


@lru_cache(maxsize=8)
def _pattern(skipped: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(item for item in skipped if "." in item or "?" in item)) or "(?!)")


_SKIP_LIST = re.compile(r"^_?SKIP_PYTHON_BINDINGS = \[\n(.*?)^\]", re.MULTILINE | re.DOTALL)
_RETURN_LIST = re.compile(r"^SUPPORTED_RETURN_TYPES = \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r"^ *[\"']([^\"'\n]*)[\"']", re.MULTILINE)
_SAFE = re.compile(r"(?!.*\)[*+])[\w.?()|]*(?:\.\*[\w.?()|]*){0,2}", re.ASCII)
"""Patterns that a match cannot run away with."""


def read_bindings(text: str) -> Bindings:
    """Read the tables of a module of the generator; empty if it cannot be read."""
    skips, types = _SKIP_LIST.search(text), _RETURN_LIST.search(text)
    skipped = _TEXT.findall(skips[1]) if skips is not None else []
    sound = all(_SAFE.fullmatch(item) and _compiles(item) for item in skipped)
    returned = _TEXT.findall(types[1]) if types is not None else []
    return Bindings(
        frozenset(skipped if sound else ()),
        frozenset(item.replace("std::", "::std::").replace("::::", "::") for item in returned),
    )


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True

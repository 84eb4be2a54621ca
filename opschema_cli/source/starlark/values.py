"""Values of Starlark expressions: strings, numbers, dictionaries, functions, and lists whose items have conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from opschema_cli.source.cmake.conditions import ALWAYS, Origin, joined
from opschema_cli.source.python import Function, PythonFile

Value: TypeAlias = object

_MACRO = re.compile(r"(?:-D)?([A-Za-z_]\w*)=\\?\"?([A-Za-z_]\w*)\\?\"?")

MAX_ITEMS = 2_000
"""Maximum length of a list made from others; further items are unknown."""


class Unknown(msgspec.Struct, frozen=True):
    """An unknown value."""


UNKNOWN = Unknown()


class ListValue(msgspec.Struct):
    """Items, each with the conditions under which it is in the list; ``open`` if there may be others."""

    items: list[tuple[Value, Origin]]
    open: bool = False

    def under(self, origin: Origin) -> ListValue:
        """Return the same list under some conditions."""
        return ListValue([(value, joined(own, origin)) for value, own in self.items], self.open)

    def __add__(self, other: Value) -> ListValue:
        """Return both lists concatenated; another value stands for unknown items."""
        if isinstance(other, ListValue) and len(self.items) + len(other.items) <= MAX_ITEMS:
            return ListValue([*self.items, *other.items], self.open or other.open)
        return ListValue(list(self.items), open=True)

    def distinct(self) -> ListValue:
        """Return the items of a set: equal ones once, unless their conditions differ."""
        always = {value for value, origin in self.items if isinstance(value, str) and origin == ALWAYS}
        seen: set[tuple[str, Origin]] = set()
        found = ListValue([], self.open)
        for value, origin in self.items:
            key = (value, ALWAYS if value in always else origin) if isinstance(value, str) else None
            if key is None or key not in seen:
                found.items.append((value, key[1] if key is not None else origin))
            if key is not None:
                seen.add(key)
        return found


class FunctionValue(msgspec.Struct, frozen=True):
    """A function of a file."""

    function: Function
    file: PythonFile


class NamedRule(msgspec.Struct, frozen=True):
    """A function from outside the tree, by its dotted name."""

    name: str


class ExtensionValue(msgspec.Struct, eq=False):
    """A Python extension that was made, with its sources after later changes."""

    sources: ListValue


def is_extension(value: Value) -> bool:
    """Whether a value is a function that makes a Python extension, such as ``CUDAExtension``."""
    return isinstance(value, NamedRule) and value.name.endswith("Extension")


def macros_in(flags: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the macros that compiler flags define as words."""
    return ((found[1], found[2]) for found in map(_MACRO.fullmatch, flags) if found)


def strings(value: Value) -> Iterator[tuple[str, Origin]]:
    """Yield the strings in a list, or a single string."""
    if isinstance(value, str):
        yield value, ALWAYS
    elif isinstance(value, ListValue):
        yield from ((item, origin) for item, origin in value.items if isinstance(item, str))


def list_of(values: Iterable[Value]) -> ListValue:
    """Return a list of values that are always in it."""
    return ListValue([(value, ALWAYS) for value in values])


def truth(value: Value) -> bool | None:
    """Whether a value is true, None if that is not known."""
    if isinstance(value, (Unknown, NamedRule)):
        return None
    if isinstance(value, ListValue):
        return (
            True if any(origin == ALWAYS for _, origin in value.items) else None if value.items or value.open else False
        )
    return bool(value)

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
"""Longest list that is made of others; what is added beyond is not known."""


class Unknown(msgspec.Struct, frozen=True):
    """A value that is not known."""


UNKNOWN = Unknown()


class ListValue(msgspec.Struct):
    """Items, each with the conditions under which it is in the list; ``open`` if there may be others."""

    items: list[tuple[Value, Origin]]
    open: bool = False

    def under(self, origin: Origin) -> ListValue:
        """The same list where some conditions hold."""
        return ListValue([(value, joined(own, origin)) for value, own in self.items], self.open)

    def __add__(self, other: Value) -> ListValue:
        """Both lists; another value stands for items that are not known."""
        if isinstance(other, ListValue) and len(self.items) + len(other.items) <= MAX_ITEMS:
            return ListValue([*self.items, *other.items], self.open or other.open)
        return ListValue(list(self.items), open=True)

    def distinct(self) -> ListValue:
        """The items of a set: those that are equal once, unless each of them is there under other conditions."""
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
    """An extension of Python that was made, with its sources as they are after later changes."""

    sources: ListValue


def is_extension(value: Value) -> bool:
    """Whether a value is a function that makes an extension of Python, such as ``CUDAExtension``."""
    return isinstance(value, NamedRule) and value.name.endswith("Extension")


def macros_in(flags: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The macros that are defined as words by flags of a compiler."""
    return ((found[1], found[2]) for found in map(_MACRO.fullmatch, flags) if found)


def strings(value: Value) -> Iterator[tuple[str, Origin]]:
    """The strings in a list, or a string by itself."""
    if isinstance(value, str):
        yield value, ALWAYS
    elif isinstance(value, ListValue):
        yield from ((item, origin) for item, origin in value.items if isinstance(item, str))


def list_of(values: Iterable[Value]) -> ListValue:
    """A list of values that are always in it."""
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

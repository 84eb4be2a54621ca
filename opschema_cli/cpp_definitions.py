"""C++ functions of a tree with given names, and macros and generators that may define further ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property

import msgspec

from opschema_cli.cpp_generators import Generators
from opschema_cli.cpp_pasting import Pasting
from opschema_cli.cpp_units import Declared, functions_named
from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span, places_of
from opschema_cli.word_search import MANY, variant_of, words_in

_NAME = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\s*[(/]")
_OPENS = re.compile(rb"\s*[(/]")
_QUALIFIER = re.compile(rb"(?:::\s*)?(?:[A-Za-z_]\w{0,100}\s*::\s*){0,10}\Z")
_NO_TYPE = re.compile(rb"(?:\b(?:return|else|new|throw|case|co_return)|[^\s\w>*&)\]/\"\\])\s*\Z")


_BEFORE = 200
"""Number of bytes to examine before a name."""


def _may_declare(data: bytes, names: Set[str]) -> bool:
    """Whether a text may declare a function with one of some names: a type precedes it, with its namespaces and classes.

    Constructors have none. A declaration that is missed, as behind a comment, counts as a mention of its name.
    """
    for place in _calls(data, {name.encode() for name in names}):
        before = data[max(0, place - _BEFORE) : place]
        qualifier = _QUALIFIER.search(before)
        before = before[: qualifier.start()] if qualifier is not None else before
        if _NO_TYPE.search(before[-40:]) is None:
            return True
    return False


def _calls(data: bytes, names: Set[bytes]) -> Iterator[int]:
    """The places of some names before a parenthesis, or before what may be a comment and a parenthesis."""
    if len(names) > MANY:
        yield from (match.start() for match in _CALLED.finditer(data) if match[1] in names)
        return
    for name in names:
        yield from (place for place in places_of(name, data) if _OPENS.match(data, place + len(name)))


def _mentions(code: str, names: Set[str]) -> Iterator[tuple[str, int]]:
    """Some names with their places in code without comments."""
    if len(names) > MANY:
        yield from ((match[0], match.start()) for match in _NAME.finditer(code) if match[0] in names)
        return
    for name in names:
        yield from ((name, place) for place in places_of(name, code))


class _Held(msgspec.Struct, frozen=True, array_like=True):
    """The names in a file, and whether one of them follows a possible type; otherwise they are only called."""

    names: list[str]
    may_declare: bool


class CppDefinitions(msgspec.Struct, dict=True):
    """The functions with some ``names`` (without namespaces) in the files of a tree that contain the word ``marker``."""

    project: Project
    names: frozenset[str]
    marker: bytes = b""

    @cached_property
    def paths(self) -> list[str]:
        """The C++ files."""
        return [path for path in self.project.workspace.files if is_cpp(path)]

    @cached_property
    def holding(self) -> dict[str, frozenset[str]]:
        """The names in each file that contains any."""
        return {path: frozenset(found.names) for path, found in self._held.items()}

    @cached_property
    def _held(self) -> dict[str, _Held]:
        def read(data: bytes) -> _Held:
            found = words_in(data, self._words) if self.marker in data else []
            return _Held(found, bool(found) and _may_declare(data, set(found)))

        reading: Reading[bytes, _Held] = Reading(f"cpp names{self._purpose}", read, _Held, variant=self._variant)
        return {path: found for path, found in self.project.scan(reading, self.paths) if found.names}

    @cached_property
    def _words(self) -> dict[bytes, str]:
        return {name.encode(): name for name in self.names if name}

    @cached_property
    def _variant(self) -> str:
        return variant_of(self.names)

    @property
    def _purpose(self) -> str:
        """The part of the names of its readings that distinguishes them from those for other markers."""
        return f" beside {self.marker.decode()}" if self.marker else ""

    @cached_property
    def functions(self) -> dict[str, list[Declared]]:
        """Declarations and definitions by their names."""
        declaring = [path for path, found in self._held.items() if found.may_declare]
        return functions_named(self.project, declaring, self.names)

    def may_be_made(self, name: str) -> bool:
        """Whether a macro may make a function with a name from parts, or a file that is not C++ may generate it."""
        return self._pasting.may_make(name) or self._generators.may_define(name)

    def is_pasted(self, name: str) -> bool:
        """Whether a macro may make a function with a name from parts."""
        return self._pasting.may_make(name)

    def mentioned(self, uses: Mapping[tuple[str, str], Sequence[Span]]) -> frozenset[str]:
        """Return the names that the C++ code uses other than in declarations and in ``uses`` (by path and name): a macro may
        define them.
        """
        known = {(item.path, item.function.name_span.end) for items in self.functions.values() for item in items}
        read = self.project.readings(self._mentioning, self.holding)
        found = {name for path, names in self.holding.items() if path not in read for name in names}
        for path, mentions in read.items():
            for name, place in mentions:
                if name not in found and (path, place + len(name)) not in known:
                    spans = uses.get((path, name), ())
                    if not any(span.start <= place < span.end for span in spans):
                        found.add(name)
        return frozenset(found)

    @property
    def _mentioning(self) -> Reading[str, list[tuple[str, int]]]:
        """The names in the code of a file, each with its place."""

        def read(text: str) -> list[tuple[str, int]]:
            held = words_in(text.encode(errors="replace"), self._words)
            return list(_mentions(only_code(text), set(held)))

        return Reading(f"cpp mentions{self._purpose}", read, list[tuple[str, int]], variant=self._variant)

    @cached_property
    def _pasting(self) -> Pasting:
        return Pasting(self.project, self.paths)

    @cached_property
    def _generators(self) -> Generators:
        return Generators(self.project, frozenset(name.encode() for name in self.names), self._purpose)

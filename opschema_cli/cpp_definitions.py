"""The C++ functions of a tree with given names, and macros and generators that may define further ones."""

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
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span, ascii_words_in, places_of

_NAME = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\s*[(/]")
_OPENS = re.compile(rb"\s*[(/]")
_QUALIFIER = re.compile(rb"(?:::\s*)?(?:[A-Za-z_]\w{0,100}\s*::\s*){0,10}\Z")
_NO_TYPE = re.compile(rb"(?:\b(?:return|else|new|throw|case|co_return)|[^\s\w>*&)\]/\"\\])\s*\Z")


_BEFORE = 200
"""The bytes that are looked at before a name."""

MANY = 30
"""More names are not looked for one by one in a text."""


def _may_declare(data: bytes, names: Set[str]) -> bool:
    """Whether a text may declare a function of one of some names: a type stands before it, its namespaces and classes.

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


class CppDefinitions(msgspec.Struct, dict=True):
    """The functions of some ``names`` (without namespaces) in the files of a tree that have the word ``marker``."""

    project: Project
    names: frozenset[str]
    marker: bytes = b""

    @cached_property
    def paths(self) -> list[str]:
        """The C++ files."""
        return [path for path in self.project.workspace.files if is_cpp(path)]

    @cached_property
    def holding(self) -> dict[str, frozenset[str]]:
        """The names that each file has, if it has one."""
        names = {name.encode(): name for name in self.names if name}
        found = {}
        for path in self.paths:
            data = self.project.workspace.peek(path)
            near = self.marker in data and (len(names) > MANY or any(name in data for name in names))
            words = names.keys() & ascii_words_in(data) if near else set()
            if words:
                found[path] = frozenset(names[word] for word in words)
        return found

    @cached_property
    def _declaring(self) -> list[str]:
        """The files in which one of the names follows what may be a type; in others it is called."""
        peek = self.project.workspace.peek
        return [path for path, names in self.holding.items() if _may_declare(peek(path), names)]

    @cached_property
    def functions(self) -> dict[str, list[Declared]]:
        """Declarations and definitions by their names."""
        return functions_named(self.project, self._declaring, self.names)

    def may_be_made(self, name: str) -> bool:
        """Whether a macro may make a function of a name from parts, or a file that is no C++ may generate it."""
        return self._pasting.may_make(name) or self._generators.may_define(name)

    def is_pasted(self, name: str) -> bool:
        """Whether a macro may make a function of a name from parts."""
        return self._pasting.may_make(name)

    def mentioned(self, uses: Mapping[tuple[str, str], Sequence[Span]]) -> frozenset[str]:
        """The names that the C++ has otherwise than in declarations, and in ``uses`` by path and name: a macro may define them."""
        known = {(item.path, item.function.name_span.end) for items in self.functions.values() for item in items}
        found: set[str] = set()
        for path, names in self.holding.items():
            source = self.project.source(path)
            if source is None:
                found |= names
                continue
            for name, place in _mentions(only_code(source.text), names - found):
                if (path, place + len(name)) not in known:
                    spans = uses.get((path, name), ())
                    if not any(span.start <= place < span.end for span in spans):
                        found.add(name)
        return frozenset(found)

    @cached_property
    def _pasting(self) -> Pasting:
        return Pasting(self.project, self.paths)

    @cached_property
    def _generators(self) -> Generators:
        return Generators(self.project, {name.encode() for name in self.names})

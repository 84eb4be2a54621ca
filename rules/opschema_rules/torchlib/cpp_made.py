"""Functions that macros of a C++ file define, on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.cpp_units import Declared
from opschema_cli.project import Project
from opschema_cli.source.cpp_functions import CppFunction, read_functions
from opschema_cli.source.cpp_namespaces import Namespaces
from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.text import Span

_WORD = re.compile(r"[A-Za-z_]\w*")

MAX_TEXT = 200_000
"""Maximum number of characters of a file's expanded macros to parse."""


class Made(msgspec.Struct, frozen=True):
    """The expansion of a macro outside of functions, its place, and the conditions there."""

    text: str
    span: Span
    conditions: tuple[Condition, ...] = ()


class MadeFunctions(msgspec.Struct, dict=True):
    """The functions in the macros of the files of a tree; their places are those of the macros."""

    project: Project
    made: Mapping[str, Sequence[Made]]

    def functions(self, path: str, names: set[str]) -> Iterator[Declared]:
        """Yield those with some names."""
        if path in self.made and not names.isdisjoint(self._words(path)):
            yield from (Declared(path, item) for item in self._all(path) if item.name in names)

    def _words(self, path: str) -> frozenset[str]:
        """Return the words in the macros of a file, so that these are only parsed on demand."""
        if path not in self._known_words:
            self._known_words[path] = frozenset(word for item in self.made[path] for word in _WORD.findall(item.text))
        return self._known_words[path]

    @cached_property
    def _known_words(self) -> dict[str, frozenset[str]]:
        return {}

    def _all(self, path: str) -> list[CppFunction]:
        if path not in self._known:
            self._known[path] = list(self._read(path))
        return self._known[path]

    @cached_property
    def _known(self) -> dict[str, list[CppFunction]]:
        return {}

    def _read(self, path: str) -> Iterator[CppFunction]:
        from opschema_cli.source.cpp import CppError, parse_cpp

        source = self.project.source(path)
        around = Namespaces(source.text) if source is not None else None
        left = MAX_TEXT
        for item in self.made[path]:
            left -= len(item.text)
            if left < 0 or around is None or not around.known:
                return
            try:
                found = read_functions(parse_cpp(item.text)).functions
            except CppError:
                continue
            space = around.at(item.span.start)
            yield from (_placed(one, item, space) for one in found)


def _placed(function: CppFunction, made: Made, space: str) -> CppFunction:
    owner = "::".join(filter(None, (space, function.owner)))
    parameters = tuple(replace(item, span=made.span) for item in function.parameters)
    return replace(
        function,
        owner=owner,
        name_span=made.span,
        span=made.span,
        parameters=parameters,
        conditions=made.conditions,
    )

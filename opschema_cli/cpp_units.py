"""Declarations that a C++ file of the workspace sees: its own, and those of the headers that it includes.

Headers outside the workspace are not read, and macros are not expanded, so that a name which is not found may exist.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from opschema_cli.file_kinds import is_python
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.cpp_functions import CppDeclarations, CppFunction, includes, read_functions
from opschema_cli.source.preprocessor import Macro, is_dead, read_directives, unambiguous
from opschema_cli.source.text import Place
from opschema_cli.word_search import WordSearch

DECLARATIONS = Reading("cpp-declarations", read_functions, CppDeclarations)
"""Declarations of one C++ file."""

MAX_HEADERS = 400
"""Maximum number of headers to follow from one file."""


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(includes(text))


INCLUDES = Reading("cpp-includes", _quoted, tuple[str, ...])
"""Names of the files that one C++ file includes."""


def _macros(text: str) -> tuple[Macro, ...]:
    return read_directives(text).kept


MACROS = Reading("cpp-macros", _macros, tuple[Macro, ...])
"""Macros of one C++ file, found without parsing it."""


class Declared(msgspec.Struct, frozen=True):
    """A function with the file that declares or defines it."""

    path: str
    function: CppFunction

    @property
    def place(self) -> Place:
        """Its name in the declaration or definition."""
        return Place(self.path, self.function.name_span)


def functions_named(project: Project, paths: Iterable[str], names: Container[str]) -> dict[str, list[Declared]]:
    """Return the functions with some names (without namespaces) in some files, by name, without those that are never compiled."""
    found: dict[str, list[Declared]] = {}
    for path, read in project.cpp_readings(DECLARATIONS, paths).items():
        for item in read.functions:
            if item.name in names and not is_dead(item.conditions):
                found.setdefault(item.name, []).append(Declared(path, item))
    return found


class CppUnits(msgspec.Struct, dict=True):
    """The files of one workspace, each with the headers that it includes. The ``expected`` names that each file holds are cached
    under ``purpose``.
    """

    project: Project
    purpose: str = ""
    expected: frozenset[str] = frozenset()

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """Paths by their last part."""
        found: dict[str, list[str]] = {}
        for path in self.project.workspace.files:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def files(self, path: str) -> tuple[str, ...]:
        """Return a file and the headers of the workspace that it includes, directly or indirectly."""
        if path in self._known:
            return self._known[path]
        found = {path: None}
        level = [path]
        while level and len(found) < MAX_HEADERS:
            read = self.project.readings(INCLUDES, level)
            named = (item for one in level for name in read.get(one, ()) for item in self._included(one, name))
            level = list(dict.fromkeys(item for item in named if item not in found))
            found.update(dict.fromkeys(level))
        self._known[path] = tuple(found)
        return self._known[path]

    def included(self, path: str) -> tuple[str, ...]:
        """Return the headers of the workspace that a file includes directly."""
        names = self.project.readings(INCLUDES, [path]).get(path, ())
        return tuple(dict.fromkeys(item for name in names for item in self._included(path, name)))

    @cached_property
    def _known(self) -> dict[str, tuple[str, ...]]:
        return {}

    @cached_property
    def _meant(self) -> dict[tuple[str, str], Sequence[str]]:
        return {}

    def _included(self, path: str, name: str) -> Sequence[str]:
        """Return the files of the workspace that an ``#include`` may refer to: beside the file, otherwise those whose paths end
        with the name.
        """
        folder = posixpath.dirname(path)
        if (folder, name) not in self._meant:
            self._meant[folder, name] = self._found(folder, name)
        return self._meant[folder, name]

    def _found(self, folder: str, name: str) -> Sequence[str]:
        beside = posixpath.normpath(posixpath.join(folder, name))
        known = self._by_name.get(name.rpartition("/")[2], ())
        if beside in known:
            return (beside,)
        plain = re.sub(r"^(?:\.\.?/)+", "", name)
        return [item for item in known if f"/{item}".endswith(f"/{plain}")] if "/" in plain or len(known) == 1 else ()

    def functions(self, path: str, names: Iterable[str]) -> Iterator[Declared]:
        """Functions of these names (without namespaces) that a file sees."""
        for file, read in self._reading(path, names):
            yield from (Declared(file, item) for item in read.functions if not is_dead(item.conditions))

    def aliases(self, path: str, names: Iterable[str]) -> dict[str, str]:
        """Type aliases that a file sees, of those headers that mention one of the names."""
        found: dict[str, str] = {}
        for _, read in self._reading(path, names):
            for name, kind in read.aliases.items():
                found[name] = kind if found.setdefault(name, kind) == kind else ""
        return found

    def macros(self, path: str) -> dict[str, Macro]:
        """Return the macros that a file sees, without those with several different definitions."""
        if path not in self._known_macros:
            files = self.files(path)
            inline = self.project.cpp_readings(DECLARATIONS, filter(is_python, files)).values()
            found = [item.macros for item in inline]
            found += self.project.readings(MACROS, [file for file in files if not is_python(file)]).values()
            self._known_macros[path] = unambiguous(macro for macros in found for macro in macros)
        return self._known_macros[path]

    @cached_property
    def _known_macros(self) -> dict[str, dict[str, Macro]]:
        return {}

    def _reading(self, path: str, names: Iterable[str]) -> Iterator[tuple[str, CppDeclarations]]:
        wanted = set(names)
        words = sorted(name.encode() for name in wanted)
        pattern = re.compile(rb"\b(?:%s)\b" % b"|".join(map(re.escape, words)))
        is_expected = wanted <= self.expected

        def holds(file: str) -> bool:
            if is_expected:
                return not wanted.isdisjoint(self._search.words_of(file))
            return self._holds(file, words, pattern)

        files = [file for file in self.files(path) if file == path or holds(file)]
        yield from self.project.cpp_readings(DECLARATIONS, files).items()

    @cached_property
    def _search(self) -> WordSearch:
        return WordSearch(self.project, f"functions of {self.purpose}", self.expected)

    def _holds(self, path: str, words: Sequence[bytes], pattern: re.Pattern[bytes]) -> bool:
        """Whether a file contains one of some words; a pattern that begins with no constant text is slow to search for alone."""
        data = self.project.workspace.peek(path)
        return any(word in data for word in words) and pattern.search(data) is not None

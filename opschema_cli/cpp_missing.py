"""C++ functions that code names but the tree does not declare, or declares and does not define, as far as its C++ shows that.

A function that is mentioned in any other way than by declarations may come from a macro, and is left alone. So is a function
whose header lies in a folder of headers that belong to another library: the tree defines none of the functions declared there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence, Set
from functools import cached_property
from posixpath import dirname

import msgspec

from opschema_cli.cpp_definitions import CppDefinitions
from opschema_cli.cpp_units import DECLARATIONS, CppUnits, Declared
from opschema_cli.file_kinds import is_cpp_header
from opschema_cli.project import Project
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.cpp_functions import includes
from opschema_cli.source.cpp_namespaces import may_mean
from opschema_cli.source.text import Place, Span
from opschema_cli.suggestions import nearest

_LIBRARY = re.compile(r"(?:torch|ATen|c10|pybind11|nanobind|thrust|cub|cuda|cooperative_groups|hip|sys)/")
"""Headers of torch, of the binding libraries, of the toolkits and of the system; they declare no function of a tree."""


class FunctionUse(msgspec.Struct, frozen=True):
    """A place that names a function, as ``m.def("f", &ns::f)`` does. ``declared`` is the name in the declaration that the place
    sees, if it is known; ``certain`` says that no other function may be meant.
    """

    name: str
    path: str
    span: Span
    declared: Place | None = None
    certain: bool = True

    @property
    def own_name(self) -> str:
        """The name without namespaces."""
        return self.name.rpartition("::")[2]


class MissingFunction(msgspec.Struct, frozen=True, eq=False):
    """A function that the tree does not declare, or declares and does not define with the same parameters.

    ``declared`` is a declaration; ``defined`` the definitions of its name with other parameters. ``near`` is a function of a
    similar name.
    """

    use: FunctionUse
    declared: Declared | None = None
    defined: tuple[Declared, ...] = ()
    near: str | None = None


class FunctionSearch(msgspec.Struct, dict=True):
    """The functions that some places of the tree name."""

    project: Project
    uses: Sequence[FunctionUse]

    def missing(self) -> Iterator[MissingFunction]:
        """Yield the missing functions. If a file finds less than half of its functions, the rest is assumed to be elsewhere."""
        searched = [(use, self._missing(use)) for use in self.uses]
        undefined = {item.declared.path for _, item in searched if item and item.declared and not item.defined}
        foreign = self._foreign({dirname(path) for path in undefined if is_cpp_header(path)})
        found = [(use, item if not _is_in(item, foreign) else None) for use, item in searched]
        counts = Counter((use.path, item is None) for use, item in found)
        for use, item in found:
            if item is not None and (item.defined or counts[use.path, True] > counts[use.path, False]):
                yield item

    def definitions(self, name: str) -> list[Declared]:
        """The definitions of functions with a name, in any namespace."""
        return [item for item in self._tree.functions.get(name, ()) if item.function.defined]

    def _missing(self, use: FunctionUse) -> MissingFunction | None:
        qualifier, _, name = use.name.rpartition("::")
        known = self._tree.functions.get(name, ())
        if not name or not use.certain or any(item.function.unsure for item in known):
            return None
        there = [item for item in known if may_mean(qualifier, item.function.owner)]
        if not there:
            return self._undeclared(use, name, qualifier)
        declared = next((item for item in there if item.place == use.declared), None)
        if declared is None or declared.function.defined:
            return None
        defined = [item for item in there if item.function.defined]
        if not defined:
            made = name in self._mentioned or self._tree.may_be_made(name)
            return MissingFunction(use, declared) if not made else None
        found = MissingFunction(use, declared, tuple(defined))
        return found if _is_defined_otherwise(declared, defined) and name not in self._mentioned else None

    def _undeclared(self, use: FunctionUse, name: str, qualifier: str) -> MissingFunction | None:
        if qualifier or self._tree.functions.get(name) or name in self._mentioned:
            return None
        if not self._sees_all(use.path) or self._tree.may_be_made(name):
            return None
        beside = {item.own_name or "." for item in self.uses if item.path == use.path}
        seen = {item.function.name for item in self._units.functions(use.path, beside)}
        return MissingFunction(use, near=nearest(name, seen))

    def _sees_all(self, path: str) -> bool:
        """Whether everything that a file and its headers include is part of the tree, apart from headers of the system and of
        torch.
        """
        if path not in self._complete:
            files = self._units.files(path)
            names = {item.rpartition("/")[2] for item in files}
            self._complete[path] = all(
                item.rpartition("/")[2] in names or _LIBRARY.match(item) or ("/" not in item and not quoted)
                for file in files
                for item, quoted in self._included(file)
            )
        return self._complete[path]

    @cached_property
    def _complete(self) -> dict[str, bool]:
        return {}

    def _included(self, path: str) -> Iterator[tuple[str, bool]]:
        """Return the names of the files that a file includes, each with whether it is in quotes."""
        source = self.project.source(path)
        text = source.text if source is not None else '#include ""'
        quoted = frozenset(includes(text, only_quoted=True))
        return ((item, item in quoted) for item in includes(text))

    def _foreign(self, folders: Set[str]) -> frozenset[str]:
        """The folders whose headers declare several functions, none of which is defined anywhere else in the tree."""
        headers: dict[str, set[str]] = {}
        for path in self.project.workspace.files if folders else ():
            if is_cpp_header(path) and (folder := dirname(path)) in folders:
                headers.setdefault(folder, set()).add(path)
        declared: dict[str, set[tuple[str, str]]] = {}
        for path, read in self.project.cpp_readings(DECLARATIONS, sorted(set().union(*headers.values()))).items():
            names = {(item.owner, item.name) for item in read.functions if not item.defined}
            declared.setdefault(dirname(path), set()).update(names)
        search = CppDefinitions(self.project, frozenset(name for found in declared.values() for _, name in found))
        defined: dict[tuple[str, str], set[str]] = {}
        for item in (item for items in search.functions.values() for item in items if item.function.defined):
            defined.setdefault((item.function.owner, item.function.name), set()).add(item.path)
        return frozenset(
            folder
            for folder, names in declared.items()
            if len(names) > 1 and not any(defined.get(name, set()) - headers[folder] for name in names)
        )

    @cached_property
    def _units(self) -> CppUnits:
        return CppUnits(self.project)

    @cached_property
    def _tree(self) -> CppDefinitions:
        return CppDefinitions(self.project, frozenset(item.own_name for item in self.uses))

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """The names that the C++ code mentions other than in declarations and in the uses."""
        used: dict[tuple[str, str], list[Span]] = {}
        for item in self.uses:
            used.setdefault((item.path, item.own_name), []).append(item.span)
        return self._tree.mentioned(used)


def _is_defined_otherwise(declared: Declared, defined: Sequence[Declared]) -> bool:
    """Whether a function is only defined with parameters other than those of its declaration, and all their types are known."""
    wanted, others = _types(declared), [_types(item) for item in defined]
    same_owner = all(item.function.owner == declared.function.owner for item in defined)
    return same_owner and all(None not in types for types in (wanted, *others)) and wanted not in others


def _types(item: Declared) -> tuple[str | None, ...]:
    return tuple(spelling(one.type) for one in item.function.parameters)


def _is_in(item: MissingFunction | None, foreign: Container[str]) -> bool:
    """Whether a function is declared in a header of one of some folders, and not defined."""
    declared = item.declared if item is not None and not item.defined else None
    return declared is not None and is_cpp_header(declared.path) and dirname(declared.path) in foreign

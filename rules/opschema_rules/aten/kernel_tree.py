"""Finds the methods of a class in the C++ code of a tree, and reasons for incompleteness: macros, generated and unread files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec
from msgspec.structs import replace

from opschema_cli.cpp_units import DECLARATIONS
from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.project import Project
from opschema_cli.source.cpp_functions import CppDeclarations, CppFunction
from opschema_cli.source.preprocessor import is_dead
from opschema_cli.source.text import Span
from opschema_rules.aten.kernel_macros import MadeByMacros

_HEADERS = ("", "h", "hpp", "hxx", "hh", "cuh")
_OTHERS = (
    *(".c++", ".h++", ".C", ".hh", ".hxx", ".cppm", ".ixx", ".inc", ".inl", ".ipp", ".tpp", ".tcc", ".txx", ".def"),
    *(".mlu", ".mluh", ".mu", ".muh", ".sycl", ".in", ".j2", ".jinja", ".jinja2", ".tmpl"),
)
"""Endings of files that may be C++, or templates of it, and are not read as such."""


class Method(msgspec.Struct, frozen=True):
    """A method and its file."""

    path: str
    written: CppFunction

    def at(self, span: Span) -> Place:
        """A stretch of the file as a place."""
        return Place(self.path, span)

    @property
    def name(self) -> str:
        """Its name."""
        return self.written.name

    @property
    def place(self) -> Place:
        """Span of its name."""
        return self.at(self.written.name_span)

    def related(self, message: str) -> Related:
        """It as the other side of a finding."""
        return Related(self.place, message)


class ClassMethods(msgspec.Struct, frozen=True):
    """The methods of one class in a tree.

    ``perhaps`` are names of methods that macros and what is not understood may define; ``complete`` says that no other is
    defined anywhere in the tree.
    """

    name: str
    defined: Sequence[Method]
    declared: Sequence[Method]
    perhaps: frozenset[str]
    complete: bool


def find_class(project: Project, name: str, namespace: str, files: Iterable[str] = ()) -> ClassMethods:
    """The methods of the class ``name``; in ``files`` only (paths or patterns), if there are any.

    A class of that name in another namespace than ``namespace`` is another one.
    """
    wanted = tuple(files)
    chosen = [path for path in project.workspace.files if not wanted or any(fnmatchcase(path, item) for item in wanted)]
    data = {path: text for path in chosen if is_cpp(path) and (text := project.workspace.peek(path))}
    naming = [path for path, text in data.items() if name.encode() in text]
    project.claim(naming)
    facts = project.cpp_readings(DECLARATIONS, naming)
    found = _Finder(project, name, namespace, data).find(naming, facts)
    return replace(found, perhaps=found.perhaps.union(_named_elsewhere(project, name, chosen)))


def _named_elsewhere(project: Project, name: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield the members of a class that are named in files which may be C++ and are not read as such."""
    member = re.compile(rb"\b%s\s*::\s*([A-Za-z_]\w*)" % name.encode())
    for path in paths:
        if path.endswith(_OTHERS):
            yield from (found.decode() for found in member.findall(project.workspace.peek(path)))


class _Finder(msgspec.Struct, frozen=True):
    project: Project
    name: str
    namespace: str
    data: Mapping[str, bytes]

    def find(self, naming: Sequence[str], facts: Mapping[str, CppDeclarations]) -> ClassMethods:
        found = [Method(path, item) for path, read in facts.items() for item in read.functions]
        live = [item for item in found if self._is_own(item.written.owner) and not is_dead(item.written.conditions)]
        loose = (item.rpartition("::") for read in facts.values() for item in read.loose)
        made = MadeByMacros.of(self.name, [macro for read in facts.values() for macro in read.macros])
        for path, data in self.data.items():
            if path in facts or made.may_be_used(data):
                source = self.project.source(path)
                made.add(source.text if source is not None else "")
        known = len(facts) == len(naming) and not made.any
        complete = known and not any(map(self._hides, facts.values())) and not any(map(self._is_renamed, naming))
        defined = [item for item in live if item.written.defined]
        declared = [item for item in live if not item.written.defined]
        perhaps = made.names | {name for owner, _, name in loose if self._is_own(owner)}
        return ClassMethods(self.name, defined, declared, frozenset(perhaps), complete)

    def _is_own(self, owner: str) -> bool:
        namespace, _, name = owner.rpartition("::")
        full = f"{self.namespace}::" if self.namespace else ""
        return name == self.name and (not namespace or f"::{namespace}::".endswith(f"::{full}"))

    def _hides(self, read: CppDeclarations) -> bool:
        """Whether a file that defines methods of the class includes a file other than a header, which may define others."""
        defines = any(item.defined and self._is_own(item.owner) for item in read.functions)
        return defines and any(_extension(path) not in _HEADERS for path in read.includes)

    def _is_renamed(self, path: str) -> bool:
        renames = re.compile(rb"(?:using\s+\w+\s*=|typedef)[^;{}]{0,300}\b%s\s*[;\w]" % self.name.encode())
        return renames.search(self.data[path]) is not None


def _extension(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower() if "." in path.rpartition("/")[2] else ""

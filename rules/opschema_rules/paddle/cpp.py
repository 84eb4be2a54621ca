"""Finds the C++ functions that entries name: those for shapes and types (``infer_meta``), and kernels by their registrations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.cpp_units import DECLARATIONS, Declared
from opschema_cli.file_kinds import is_cpp
from opschema_cli.readings import Reading
from opschema_cli.source.preprocessor import is_dead
from opschema_cli.source.text import Span
from opschema_rules.aten.entry import string
from opschema_rules.paddle.grammar import Kernel
from opschema_rules.paddle.model import OpEntry, Tree

_REGISTERED = re.compile(
    rb"(?m)^[ \t]*PD_REGISTER_KERNEL(?:_FOR_ALL_DTYPE)?\s*\(\s*(\w+)\s*,\s*\w+\s*,\s*\w+\s*,\s*([\w:]+)"
    rb"|^[ \t]*PD_REGISTER_KERNEL_FOR_ALL_BACKEND_DTYPE\w*\s*\(\s*(\w+)\s*,\s*\w+\s*,\s*([\w:]+)"
)
_MENTIONED = re.compile(rb"\b[A-Z][A-Z0-9_]{4,}\s*\(\s*(\w+)")
_FUNCTION = re.compile(rb"\bvoid\s+(\w+(?:Kernel|Meta)\w*)\s*\(")
_HEADERS = (".h", ".hpp")

MOST = 0.9
"""The share of kernels or functions that a tree has to know before one that it does not know is missing."""


class Names(msgspec.Struct, frozen=True, array_like=True):
    """Names in a C++ file: kernels with the functions registered for them, first arguments of macros, and functions."""

    registered: tuple[tuple[str, str], ...] = ()
    mentioned: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


def _names(data: bytes) -> Names:
    if b"Kernel" not in data and b"Meta(" not in data and b"REGISTER" not in data:
        return Names()
    registered = ((one or three, two or four) for one, two, three, four in _REGISTERED.findall(data))
    mentioned = sorted(set(_MENTIONED.findall(data))) if b"REGISTER" in data else ()
    return Names(
        tuple((name.decode(), function.decode()) for name, function in registered),
        tuple(name.decode() for name in mentioned),
        tuple(sorted({name.decode() for name in _FUNCTION.findall(data)})),
    )


NAMES = Reading("paddle names of kernels", _names, Names)


class FunctionCheck(msgspec.Struct, frozen=True, eq=False):
    """A function that an entry names at ``place``: for shapes and types (``kernel`` is None), or as a kernel.

    ``functions`` are those of its name in C++. ``missing`` says that no C++ file has it, though the tree has nearly all others;
    ``known`` are all their names. ``registering`` are the files that register a kernel, which may define another function.
    """

    entry: OpEntry
    name: str
    place: Span
    functions: tuple[Declared, ...]
    missing: bool
    known: frozenset[str]
    kernel: Kernel | None = None
    registering: tuple[str, ...] = ()

    def defined(self) -> tuple[Declared, ...]:
        """The functions of the same name in the files that register them."""
        named = {(item.function.owner, item.function.name) for item in self.functions}
        read = self.entry.listed.tree.project.cpp_readings(DECLARATIONS, self.registering)
        found = (Declared(path, item) for path, one in read.items() for item in one.functions)
        return tuple(item for item in found if (item.function.owner, item.function.name) in named)


def infer_metas(entry: OpEntry) -> list[Declared]:
    """The functions in C++ that an entry may name in ``infer_meta``."""
    node = entry.within("infer_meta", "func")
    symbol = (string(node) or "").strip().rpartition("::")[2]
    return _search_of(entry.listed.tree).declared([symbol]).get(symbol, [])


def read_functions(tree: Tree) -> Iterator[FunctionCheck]:
    """The functions that the entries name, as far as what is passed to them is known."""
    search = _search_of(tree)
    yield from search.infer_metas()
    yield from search.kernels()


@cached_on_argument
def _search_of(tree: Tree) -> _Search:
    return _Search(tree)


class _Search(msgspec.Struct, dict=True):
    tree: Tree

    @cached_property
    def files(self) -> Mapping[str, Names]:
        """The names in each C++ file."""
        paths = [path for path in self.tree.project.workspace.files if is_cpp(path)]
        return dict(self.tree.project.scan(NAMES, paths))

    @cached_property
    def paths(self) -> Mapping[str, list[str]]:
        """The files that may declare a function, by its name; only headers if one does."""
        found: dict[str, list[str]] = {}
        for path, names in self.files.items():
            for name in names.functions:
                found.setdefault(name, []).append(path)
        return {name: [path for path in paths if path.endswith(_HEADERS)] or paths for name, paths in found.items()}

    @cached_property
    def registered(self) -> Mapping[str, dict[str, list[str]]]:
        """The functions that are registered for each kernel, with the files that do it."""
        found: dict[str, dict[str, list[str]]] = {}
        for path, names in self.files.items():
            for name, function in names.registered:
                found.setdefault(name, {}).setdefault(function, []).append(path)
        return found

    @cached_property
    def entries(self) -> list[OpEntry]:
        """The entries whose functions are called as they say."""
        return [entry for entry in self.tree.entries if entry.listed.calls_cpp]

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The first arguments of macros, one of which may register a kernel or a part of its name."""
        return frozenset(name for names in self.files.values() for name in names.mentioned)

    def declared(self, wanted: Iterable[str]) -> dict[str, list[Declared]]:
        """The functions of these names, without namespaces."""
        symbols = {name.rpartition("::")[2] for name in wanted}
        paths = sorted({path for symbol in symbols for path in self.paths.get(symbol, ())})
        found: dict[str, list[Declared]] = {}
        for path, read in self.tree.project.cpp_readings(DECLARATIONS, paths).items():
            for function in read.functions:
                if function.name in symbols and not is_dead(function.conditions):
                    found.setdefault(function.name, []).append(Declared(path, function))
        return found

    def infer_metas(self) -> Iterator[FunctionCheck]:
        nodes = [(entry, entry.within("infer_meta", "func")) for entry in self.entries]
        named = [(entry, node, node.value.strip()) for entry, node in nodes if node is not None and string(node)]
        known = frozenset(name for name in self.paths if "Meta" in name)
        there = [name.rpartition("::")[2] in self.paths for *_, name in named]
        most = bool(there) and sum(there) > MOST * len(there)
        declared = self.declared(name for *_, name in named)
        for (entry, node, name), here in zip(named, there, strict=True):
            scope, _, symbol = name.rpartition("::")
            functions = [item for item in declared.get(symbol, ()) if item.function.owner.endswith(scope)]
            missing = most and not here and symbol not in self.mentioned
            yield FunctionCheck(entry, name, node.span, tuple(functions), missing, known)

    def kernels(self) -> Iterator[FunctionCheck]:
        named = [(entry, kernel) for entry in self.entries for kernel in entry.kernels]
        known = frozenset(self.registered)
        there = [kernel.name in known or self._may_be_registered(kernel.name) for _, kernel in named]
        most = bool(there) and sum(there) > MOST * len(there)
        declared = self.declared(name for _, kernel in named for name in self.registered.get(kernel.name, ()))
        for (entry, kernel), here in zip(named, there, strict=True):
            node = entry.within("kernel", "func")
            place = entry.inner(node, kernel.span) if node is not None else entry.place
            if most and not here:
                yield FunctionCheck(entry, kernel.name, place, (), True, known, kernel)
            for name, paths in sorted(self.registered.get(kernel.name, {}).items()):
                scope, _, symbol = name.rpartition("::")
                functions = [item for item in declared.get(symbol, ()) if item.function.owner == (scope or "phi")]
                yield FunctionCheck(entry, name, place, tuple(functions), False, known, kernel, tuple(paths))

    def _may_be_registered(self, name: str) -> bool:
        """Whether a macro may register a kernel: it is passed the name or the first words of it."""
        words = name.split("_")
        return any("_".join(words[:count]) in self.mentioned for count in range(1, len(words) + 1))

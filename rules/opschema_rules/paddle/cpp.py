"""Finds the C++ functions that entries name: those for shapes and types (``infer_meta``), and kernels by their registrations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
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
    rb"(?m)^[ \t]*PD_REGISTER_KERNEL(?:_FOR_ALL_DTYPE|(_FOR_ALL_BACKEND_DTYPE\w*))?"
    rb"\s*\(\s*(\w+)\s*,(?(1)|\s*\w+\s*,)\s*\w+\s*,\s*([\w:]+)"
)
_MENTIONED = re.compile(rb"\b[A-Z][A-Z0-9_]{4,}\s*\(\s*(\w+)")
_DECLARED = [
    *((mark, re.compile(rb"void\s+(\w+)\s*\(")) for mark in (b"Kernel", b"Meta")),
    *((mark, re.compile(rb"class\s+(?:[A-Z_]+\s+)?(\w+%s)\b" % mark)) for mark in (b"Trait", b"Interface")),
    *(
        (mark, re.compile(rb"\b(\w+%s)\s*\(" % mark))
        for mark in (b"_impl", b"OpInferSymbolicShape", b"OpParseKernelKey")
    ),
]
"""Patterns of functions and classes, each with a part of their names: searching for that first is many times faster."""

_SHAPE = b"OP_DECLARE_INFER_SYMBOLIC_SHAPE"
_SHAPES = re.compile(rb"(?m)^[ \t]*%s\s*\(\s*(\w+)" % _SHAPE)
_HEADERS = (".h", ".hpp")

MOST = 0.9
"""The share of kernels or functions that a tree has to know before one that it does not know is missing."""


class Names(msgspec.Struct, frozen=True, array_like=True):
    """Names in a C++ file: kernels with the functions registered for them, first arguments of macros, and functions or classes."""

    registered: tuple[tuple[str, str], ...] = ()
    mentioned: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


def _names(data: bytes) -> Names:
    found = ((mark, pattern.findall(data)) for mark, pattern in _DECLARED if mark in data)
    declared = {name.decode() for mark, names in found for name in names if mark in name}
    if _SHAPE in data:
        declared.update(f"{name.decode()}OpInferSymbolicShape" for name in _SHAPES.findall(data))
    registered = _REGISTERED.findall(data) if b"PD_REGISTER_KERNEL" in data else ()
    return Names(
        tuple((name.decode(), function.decode()) for _, name, function in registered),
        tuple(sorted({name.decode() for name in _MENTIONED.findall(data)})) if b"REGISTER" in data else (),
        tuple(sorted(declared)),
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
    known: Set[str]
    kernel: Kernel | None = None
    functions: tuple[Declared, ...] = ()
    missing: bool = False
    registering: tuple[str, ...] = ()

    def defined(self) -> tuple[Declared, ...]:
        """The functions of the same name in the files that register them."""
        named = {(item.function.owner, item.function.name) for item in self.functions}
        read = self.entry.listed.tree.project.cpp_readings(DECLARATIONS, self.registering)
        found = (Declared(path, item) for path, one in read.items() for item in one.functions)
        return tuple(item for item in found if (item.function.owner, item.function.name) in named)


class CppNames(msgspec.Struct, dict=True):
    """The C++ files of a tree, searched for what entries name."""

    tree: Tree

    @cached_property
    def files(self) -> Mapping[str, Names]:
        """The names in each C++ file."""
        paths = [path for path in self.tree.project.workspace.files if is_cpp(path)]
        return dict(self.tree.project.scan(NAMES, paths))

    @cached_property
    def paths(self) -> Mapping[str, list[str]]:
        """The files that may declare a function or class, by its name; only headers if one does."""
        found: dict[str, list[str]] = {}
        for path, names in self.files.items():
            for name in names.declared:
                found.setdefault(name, []).append(path)
        return {name: [path for path in paths if path.endswith(_HEADERS)] or paths for name, paths in found.items()}

    @cached_property
    def registered(self) -> Mapping[str, Mapping[str, list[str]]]:
        """The functions that are registered for each kernel, with the files that do it."""
        found: dict[str, dict[str, list[str]]] = {}
        for path, names in self.files.items():
            for name, function in names.registered:
                found.setdefault(name, {}).setdefault(function, []).append(path)
        return found

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The first arguments of macros, one of which may register a kernel or a part of its name."""
        return frozenset(name for names in self.files.values() for name in names.mentioned)

    def may_be_registered(self, name: str) -> bool:
        """Whether a macro may register a kernel or declare a function: it is passed the name or the first words of it."""
        words = name.split("_")
        return any("_".join(words[:count]) in self.mentioned for count in range(1, len(words) + 1))

    def missing(self, names: Iterable[str]) -> frozenset[str]:
        """The functions or classes that the tree does not declare, if it has most of them."""
        wanted = set(names)
        found = frozenset(wanted - self.paths.keys())
        return found if 2 * len(found) < len(wanted) else frozenset()

    @cached_property
    def has_impl(self) -> bool:
        """Whether the tree has a function whose name ends with ``_impl``."""
        return any(name.endswith("_impl") for name in self.paths)

    def mentioned_in_headers(self, names: Iterable[str]) -> frozenset[str]:
        """Those of some names that headers call or declare."""
        wanted = {name.encode() for name in names}
        if not wanted:
            return frozenset()
        pattern, peek = (
            re.compile(rb"\b(%s)\s*\(" % b"|".join(map(re.escape, sorted(wanted)))),
            self.tree.project.workspace.peek,
        )
        texts = (peek(path) for path in self.files if path.endswith(_HEADERS))
        return frozenset(name.decode() for text in texts for name in pattern.findall(text))

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

    def checks(self) -> Iterator[FunctionCheck]:
        """The functions that the entries name, as far as what is passed to them is known."""
        metas, kernels = list[FunctionCheck](), list[FunctionCheck]()
        known = {name for name in self.paths if "Meta" in name}
        for entry in self.tree.entries:
            if entry.calls_cpp:
                node = entry.within("infer_meta", "func")
                if node is not None and string(node):
                    metas.append(FunctionCheck(entry, node.value.strip(), node.span, known))
                node = entry.within("kernel", "func")
                for kernel in entry.kernels:
                    place = entry.inner(node, kernel.span) if node is not None else entry.place
                    kernels.append(FunctionCheck(entry, kernel.name, place, self.registered.keys(), kernel))
        functions = {one.name: {one.name: list[str]()} for one in metas}
        yield from self._checks(metas, functions)
        yield from self._checks(kernels, self.registered)

    def _checks(
        self, used: list[FunctionCheck], functions: Mapping[str, Mapping[str, list[str]]]
    ) -> Iterator[FunctionCheck]:
        symbols = [(one.name.rpartition("::")[2], one.known) for one in used]
        there = [symbol in known or self.may_be_registered(symbol) for symbol, known in symbols]
        most = sum(there) > MOST * len(there)
        declared = self.declared(name for one in used for name in functions.get(one.name, ()))
        for one, here in zip(used, there, strict=True):
            if not here:
                yield msgspec.structs.replace(one, missing=most)
            for name, paths in sorted(functions.get(one.name, {}).items() if here else ()):
                scope, _, symbol = name.rpartition("::")
                owners = (scope, f"phi::{scope}") if scope else ("phi",)
                found = tuple(item for item in declared.get(symbol, ()) if item.function.owner in owners)
                yield msgspec.structs.replace(one, name=name, functions=found, registering=tuple(paths))


@cached_on_argument
def cpp_names(tree: Tree) -> CppNames:
    """The C++ names of a tree, searched for once."""
    return CppNames(tree)


def infer_metas(entry: OpEntry) -> list[Declared]:
    """The functions in C++ that an entry may name in ``infer_meta``."""
    symbol = (string(entry.within("infer_meta", "func")) or "").strip().rpartition("::")[2]
    return cpp_names(entry.listed.tree).declared([symbol]).get(symbol, [])

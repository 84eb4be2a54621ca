"""Finds the C++ functions that entries name: those for shapes and types (``infer_meta``), and kernels by their registrations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.cpp_units import Declared, functions_named
from opschema_cli.file_kinds import is_cpp
from opschema_cli.readings import Reading
from opschema_cli.sequences import grouped
from opschema_cli.source.text import Span
from opschema_rules.aten.entry import string
from opschema_rules.paddle.grammar import Kernel
from opschema_rules.paddle.model import OpEntry, Tree

_REGISTERED = re.compile(
    rb"(?m)^[ \t]*PD_REGISTER_KERNEL(?:_FOR_ALL_DTYPE|(_FOR_ALL_BACKEND_DTYPE\w*))?"
    rb"\s*\(\s*(\w+)\s*,(?(1)|\s*\w+\s*,)\s*\w+\s*,\s*([\w:]+)"
)
_MENTIONED = re.compile(rb"\b[A-Z][A-Z0-9_]{4,}\s*\(\s*(\w+)")
_DECLARED = {
    b"Kernel": rb"void\s+(\w*Kernel\w*)\s*\(",
    b"Meta": rb"void\s+(\w*Meta\w*)\s*\(",
    b"Trait": rb"class\s+(?:[A-Z_]+\s+)?(\w+Trait)\b",
    b"Interface": rb"class\s+(?:[A-Z_]+\s+)?(\w+Interface)\b",
    b"_impl": rb"\b(\w+_impl)\s*\(",
    b"OpInferSymbolicShape": rb"\b(\w+OpInferSymbolicShape)\s*\(",
    b"OpParseKernelKey": rb"\b(\w+OpParseKernelKey)\s*\(",
}
"""Patterns of functions and classes by parts of their names: searching for these first is many times faster."""

_SHAPE = b"OP_DECLARE_INFER_SYMBOLIC_SHAPE"
_SHAPES = re.compile(rb"(?m)^[ \t]*%s\s*\(\s*(\w+)" % _SHAPE)


def _is_header(path: str) -> bool:
    return path.endswith((".h", ".hpp"))


MOST = 0.9
"""The share of kernels or functions that a tree must know before an unknown one counts as missing."""


class Names(msgspec.Struct, frozen=True, array_like=True):
    """Names in a C++ file: kernels with the functions registered for them, first arguments of macros, and functions or classes."""

    registered: tuple[tuple[str, str], ...] = ()
    mentioned: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


def _names(data: bytes) -> Names:
    declared = {name for mark, pattern in _DECLARED.items() if mark in data for name in re.findall(pattern, data)}
    if _SHAPE in data:
        declared.update(name + b"OpInferSymbolicShape" for name in _SHAPES.findall(data))
    registered = _REGISTERED.findall(data) if b"PD_REGISTER_KERNEL" in data else ()
    mentioned = set(_MENTIONED.findall(data)) if b"REGISTER" in data else ()
    return Names(
        tuple((name.decode(), function.decode()) for _, name, function in registered),
        tuple(sorted(name.decode() for name in mentioned)),
        tuple(sorted(name.decode() for name in declared)),
    )


NAMES = Reading("paddle names of kernels", _names, Names)


class FunctionCheck(msgspec.Struct, frozen=True, eq=False):
    """A function that an entry names at ``place``: for shapes and types (``kernel`` is None), or as a kernel.

    ``functions`` are those of its name in C++. ``missing`` says that no C++ file has it, though the tree has nearly all others.
    ``registering`` are the files that register a kernel, which may define another function.
    """

    entry: OpEntry
    name: str
    place: Span
    kernel: Kernel | None = None
    functions: Sequence[Declared] = ()
    missing: bool = False
    registering: Sequence[str] = ()

    def defined(self) -> list[Declared]:
        """The functions of the same name in the files that register them."""
        symbol, owners = self.name.rpartition("::")[2], {item.function.owner for item in self.functions}
        found = functions_named(self.entry.listed.tree.project, self.registering, {symbol})
        return [item for item in found.get(symbol, ()) if item.function.owner in owners]


class CppNames(msgspec.Struct, dict=True):
    """The C++ files of a tree, searched for the names in entries."""

    tree: Tree

    @cached_property
    def files(self) -> Mapping[str, Names]:
        """The names in each C++ file."""
        return dict(self.tree.project.scan(NAMES, filter(is_cpp, self.tree.project.workspace.files)))

    @cached_property
    def paths(self) -> Mapping[str, list[str]]:
        """The files that may declare a function or class, by its name; only headers if one does."""
        found = grouped((name, path) for path, names in self.files.items() for name in names.declared)
        return {name: list(filter(_is_header, paths)) or paths for name, paths in found.items()}

    @cached_property
    def registered(self) -> Mapping[str, Mapping[str, list[str]]]:
        """The functions that are registered for each kernel, with the files that do it."""
        pairs = ((name, (function, path)) for path, names in self.files.items() for name, function in names.registered)
        return {name: grouped(functions) for name, functions in grouped(pairs).items()}

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Return the first arguments of macros; a macro may use one to register a kernel, or as a part of its name."""
        return frozenset(name for names in self.files.values() for name in names.mentioned)

    def may_be_registered(self, name: str) -> bool:
        """Whether a macro may register a kernel or declare a function: its name or the first words of it are an argument."""
        words = name.split("_")
        return any("_".join(words[:count]) in self.mentioned for count in range(1, len(words) + 1))

    def missing(self, names: Iterable[str]) -> frozenset[str]:
        """Return the functions or classes that the tree does not declare, if it has most of them."""
        wanted = set(names)
        found = frozenset(wanted - self.paths.keys())
        return found if 2 * len(found) < len(wanted) else frozenset()

    def called_in_headers(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names that headers call or declare."""
        pattern = re.compile(rb"\b(%s)\s*\(" % "|".join(sorted(names)).encode())
        texts = map(self.tree.project.workspace.peek, filter(_is_header, self.files))
        return frozenset(name.decode() for text in texts for name in pattern.findall(text))

    def declared(self, wanted: Iterable[str]) -> dict[str, list[Declared]]:
        """The functions of these names, without namespaces."""
        symbols = {name.rpartition("::")[2] for name in wanted}
        paths = sorted({path for symbol in symbols for path in self.paths.get(symbol, ())})
        return functions_named(self.tree.project, paths, symbols)

    def checks(self) -> Iterator[FunctionCheck]:
        """Yield the functions named in entries, as far as their arguments are known."""
        entries = [entry for entry in self.tree.entries if entry.calls_cpp]
        named = ((entry, entry.within("infer_meta", "func")) for entry in entries)
        metas = [
            FunctionCheck(entry, node.value.strip(), node.span)
            for entry, node in named
            if node is not None and string(node)
        ]
        yield from self._checks(metas, {one.name: {one.name: []} for one in metas})
        kernels = ((entry, kernel) for entry in entries for kernel in entry.kernels)
        used = [FunctionCheck(entry, one.name, one.span, one) for entry, one in kernels]
        yield from self._checks(used, self.registered)

    def known(self, check: FunctionCheck) -> Mapping[str, object]:
        """The names that a function might have instead."""
        return self.paths if check.kernel is None else self.registered

    def _checks(
        self, used: Sequence[FunctionCheck], functions: Mapping[str, Mapping[str, list[str]]]
    ) -> Iterator[FunctionCheck]:
        symbols = [(one.name.rpartition("::")[2], self.known(one)) for one in used]
        there = [symbol in known or self.may_be_registered(symbol) for symbol, known in symbols]
        most = sum(there) > MOST * len(there)
        declared = self.declared(name for one in used for name in functions.get(one.name, ()))
        for one, here in zip(used, there, strict=True):
            if not here:
                yield replace(one, missing=most)
            for name, paths in sorted(functions.get(one.name, {}).items() if here else ()):
                scope, _, symbol = name.rpartition("::")
                owners = (scope, f"phi::{scope}") if scope else ("phi",)
                found = [item for item in declared.get(symbol, ()) if item.function.owner in owners]
                yield replace(one, name=name, functions=found, registering=paths)


@cached_on_argument
def cpp_names(tree: Tree) -> CppNames:
    """The C++ names of a tree, searched for once."""
    return CppNames(tree)

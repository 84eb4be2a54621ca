"""Stubs (``.pyi``) of extension modules, compared with their bindings."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.python import Function, PythonFile
from opschema_rules.bindings.imports import Extensions
from opschema_rules.bindings.model import Binding, Module


class Stub(msgspec.Struct, frozen=True, eq=False):
    """The stub of a module."""

    file: PythonFile
    module: Module

    @property
    def names(self) -> frozenset[str]:
        """Return all names that it declares."""
        body = self.file.body
        return frozenset(body.named)


class StubFunction(msgspec.Struct, frozen=True, eq=False):
    """A function of a stub, and the binding of its name, if there is exactly one of both."""

    file: PythonFile
    function: Function
    binding: Binding

    @property
    def place(self) -> Place:
        """Its name."""
        return Place(self.file.path, self.function.span)


def read_stubs(extensions: Extensions) -> Iterator[Stub | StubFunction]:
    """The stubs beside the modules."""
    for file, module in extensions.stubs():
        yield Stub(file, module)
        for name, functions in file.functions.items():
            bindings = module.by_name.get(name, [])
            if len(functions) == len(bindings) == 1:
                yield StubFunction(file, functions[0], bindings[0])

"""Stubs (``.pyi``) of extension modules, beside what these bind."""

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
        """All names that it gives."""
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
    for path, modules in extensions.by_path.items():
        plain = f"{path.removesuffix('.py').removesuffix('/__init__')}.pyi"
        stubs = [item for item in dict.fromkeys((f"{path}i", plain)) if extensions.project.workspace.is_file(item)]
        file = extensions.project.python(stubs[0]) if len(modules) == 1 and len(stubs) == 1 else None
        if file is None:
            continue
        yield Stub(file, modules[0])
        for name, functions in file.functions.items():
            bindings = modules[0].by_name.get(name, [])
            if len(functions) == 1 and len(bindings) == 1:
                yield StubFunction(file, functions[0], bindings[0])

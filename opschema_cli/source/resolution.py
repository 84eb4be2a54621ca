"""Results of resolving a name in Python code, and of folding a constant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec

from opschema_cli.source.keyed_struct import KeyedStruct
from opschema_cli.source.python import Assign, Binding, Class, Expr, Function, Import, PythonFile, Scope

HARMLESS_BASES = frozenset(
    {
        "object",
        "ABC",
        "abc.ABC",
        "Generic",
        "typing.Generic",
        "Protocol",
        "typing.Protocol",
        "typing_extensions.Protocol",
    }
)
"""Bases outside the workspace that do not define operator methods."""


class Unresolved(msgspec.Struct, frozen=True):
    """A result that cannot be known statically, with the reason."""

    reason: str


class External(msgspec.Struct, frozen=True):
    """A name that the workspace imports from elsewhere, by its full dotted name."""

    name: str


class Missing(msgspec.Struct, frozen=True):
    """A name that its module, which is part of the workspace, does not define."""

    module: str
    name: str


class ModuleRef(msgspec.Struct, frozen=True):
    """A module of the workspace."""

    path: str


ClassKey: TypeAlias = tuple[str, int]
"""A class's file and place."""


class ClassRef(KeyedStruct, frozen=True, dict=True):
    """A class and the file that defines it."""

    file: PythonFile
    cls: Class

    @cached_property
    def key(self) -> ClassKey:
        """Its file and place, which identify the class."""
        return self.file.path, self.cls.start

    @cached_property
    def assigned(self) -> dict[str, Expr]:
        """The last assignment to each name in its body."""
        return {item.target: item.value for item in self.cls.body.assigns if item.value is not None}

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.cls.name


class FunctionRef(msgspec.Struct, frozen=True, eq=False):
    """A function, the file that defines it and, for a method, its class."""

    file: PythonFile
    function: Function
    owner: ClassRef | None = None


class ValueRef(msgspec.Struct, frozen=True, eq=False):
    """An assigned value and the file of the assignment; ``owner`` is the class whose attribute it is."""

    file: PythonFile
    assign: Assign
    owner: ClassRef | None = None


Resolution: TypeAlias = "ClassRef | FunctionRef | ValueRef | ModuleRef | External | Missing | Unresolved"
Member: TypeAlias = "FunctionRef | ValueRef | Unresolved | None"


def _identity(found: Resolution) -> tuple[str, int]:
    """Return the file and place of a definition: two references to it need not be equal."""
    if isinstance(found, ModuleRef):
        return found.path, -1
    if isinstance(found, ClassRef):
        return found.key
    if isinstance(found, FunctionRef):
        return found.file.path, found.function.outer.start
    return (found.file.path, found.assign.start) if isinstance(found, ValueRef) else ("", -1)


def star_imports(module: Scope, name: str, after: int = 0) -> list[Import]:
    """Return the ``from m import *`` statements of a module after an offset, each as the import of one name."""
    stars = (item for item in bindings_of(module, "*") if isinstance(item, Import) and item.start >= after)
    return [Import(name, item.module, name, item.level, item.start, item.end) for item in stars]


def is_definition(found: Resolution) -> bool:
    """Whether it is a class, function or value of the workspace."""
    return isinstance(found, ClassRef | FunctionRef | ValueRef)


def only_definition(found: Sequence[Resolution], name: str, path: str) -> Resolution:
    """Return the only definition in the workspace that imports of a name in a file lead to; otherwise the result of the last
    import.
    """
    good = [item for item in found if not isinstance(item, Missing | External)]
    if len({_identity(item) for item in good if not isinstance(item, Unresolved)}) > 1:
        return Unresolved(f"imports of `{name}` in {path} lead to several definitions")
    return good[0] if good else found[-1]


def binds(item: Assign) -> bool:
    """Whether an assignment binds its target: an annotation alone does not."""
    return item.value is not None or item.annotation is None


def bindings_of(scope: Scope, name: str) -> list[Binding]:
    """Return the bindings of a name in a scope; those of one kind in source order."""
    return [item for item in scope.named.get(name, ()) if not isinstance(item, Assign) or binds(item)]


def scopes_of(value: ValueRef) -> tuple[Scope, ...]:
    """Return the scopes where the names of an assigned value are looked up before its module: the class body that assigns it."""
    body = value.owner.cls.body if value.owner is not None else None
    return (body,) if body is not None and any(item is value.assign for item in body.assigns) else ()


class Folded(msgspec.Struct, frozen=True):
    """The value of a constant. ``symbol`` is a dotted name outside the workspace (``torch.float16``) instead of a value."""

    value: object = None
    symbol: str = ""

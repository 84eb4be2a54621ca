"""Data of the operator table: an operator, its declaration, implementations, registrations, workload rows and uses.

All of it is frozen and can be written as JSON. Every part has its place, and where something cannot be known without running
the code, ``unresolved`` says why. Texts are as the file writes them, on one line; nothing here is wording for a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.schema.align import Binding
from opschema_cli.source.python import ParamKind
from opschema_cli.source.text import Place

Role: TypeAlias = Literal[
    "definition", "class", "kernel", "fake", "autograd", "vmap", "autocast", "decomposition", "torch_dispatch", "effect",
    "fallthrough", "backend", "lowering", "other",
]  # fmt: skip
"""The part that an implementation or registration has: ``fake`` is a fake (meta) kernel, ``fallthrough`` hands the call on to
the kernel of the next key, ``backend`` is a backend's claim to support the operator, ``lowering`` a signature that is derived
from the declared one.
"""


class Gap(msgspec.Struct, frozen=True):
    """Something unknown about an operator: the ``part`` (``fake``, ``declaration``), and the reason."""

    part: str
    reason: str
    place: Place | None = None


class Argument(msgspec.Struct, frozen=True):
    """An argument of a declaration, or a parameter of the code.

    ``text`` is all of it as its file writes it, empty where it is not written in one piece. ``role`` is the word of the dialect
    for what it is (``input``, ``static dim``, ``tensor``). ``default`` is None without one, ``mutated`` None where it is not
    known. ``alias`` is the alias annotation of a schema (``a!``). ``fields`` are those of an argument that is a structure.
    ``stands_for`` names the declared argument that a parameter of another name takes (``config.scale``). ``note`` says in a few
    words what is special about it.
    """

    name: str
    type: str = ""
    kind: ParamKind = "normal"
    role: str = ""
    default: str | None = None
    optional: bool = False
    mutated: bool | None = False
    alias: str = ""
    dtypes: tuple[str, ...] = ()
    shape: str = ""
    text: str = ""
    place: Place | None = None
    fields: tuple[Argument, ...] = ()
    stands_for: str = ""
    note: str = ""
    unresolved: str = ""

    def leaves(self, prefix: str = "") -> Iterator[Argument]:
        """The argument, or the fields in it that have none themselves, by their dotted names."""
        name = prefix + self.name
        if not self.fields:
            yield self if not prefix else msgspec.structs.replace(self, name=name)
        for field in self.fields:
            yield from field.leaves(f"{name}.")


class Return(msgspec.Struct, frozen=True):
    """A returned value; ``name`` is empty where it has none."""

    name: str = ""
    type: str = ""
    alias: str = ""
    dtypes: tuple[str, ...] = ()
    shape: str = ""
    place: Place | None = None
    unresolved: str = ""


class Tag(msgspec.Struct, frozen=True):
    """A tag; ``text`` is its description in the tree."""

    name: str
    text: str = ""
    place: Place | None = None


class Constraint(msgspec.Struct, frozen=True):
    """A condition that every call satisfies, as an expression of Python: ``x.shape[1] % 8 == 0``."""

    text: str
    place: Place | None = None


class Declaration(msgspec.Struct, frozen=True):
    """The declaration of an operator.

    ``form`` says how (``custom_op``, ``manifest``), ``schema`` is the signature in one line where the dialect writes one, and
    ``status`` what a manifest says of it; it is ``planned`` if that says that it is not implemented yet. ``arguments`` and
    ``returns`` are None where they are not known. ``constraints`` are conditions beside the shapes of the arguments;
    ``combinations`` the dtypes that go together (``x: float16, y: int8``), any without one.
    """

    form: str
    place: Place | None = None
    arguments: tuple[Argument, ...] | None = ()
    returns: tuple[Return, ...] | None = ()
    tags: tuple[Tag, ...] = ()
    schema: str = ""
    status: str = ""
    unresolved: str = ""
    planned: bool = False
    constraints: tuple[Constraint, ...] = ()
    combinations: tuple[Constraint, ...] = ()


class Signature(msgspec.Struct, frozen=True):
    """The parameters of a function that takes arguments of the operator, or None if they are not known.

    ``takes`` are the roles of the arguments that it takes, all without any; ``by`` says how these find their parameters.
    """

    name: str
    place: Place | None = None
    parameters: tuple[Argument, ...] | None = ()
    takes: tuple[str, ...] = ()
    by: Binding = "name"
    unresolved: str = ""


class Implementation(msgspec.Struct, frozen=True):
    """Code that implements an operator in one ``role``, for some dispatch ``keys`` or devices (empty: all; None: not known).

    ``symbol`` is its Python or C++ name. ``signatures`` are those of the functions that together take the arguments: of a class
    its constructor and its call. ``registered`` is where it is registered, ``text`` its code where that is one line (a
    derivative's formula). ``generated`` code is written by a tool; ``conditional`` code may not be registered.
    """

    role: Role
    symbol: str = ""
    place: Place | None = None
    keys: tuple[str, ...] | None = ()
    signatures: tuple[Signature, ...] = ()
    registered: Place | None = None
    text: str = ""
    generated: bool = False
    conditional: bool = False
    unresolved: str = ""


class Registration(msgspec.Struct, frozen=True):
    """A registering call, decorator or entry: its ``form`` (``register_fake``, ``supported``), the ``role`` of the registered
    object, and the ``helper`` that makes the call, if any.
    """

    role: Role
    form: str
    place: Place | None = None
    keys: tuple[str, ...] | None = ()
    helper: str = ""
    conditional: bool = False
    unresolved: str = ""


class WorkloadRow(msgspec.Struct, frozen=True):
    """A declared workload: its label, its dtypes, and the source text of its other values by their keys."""

    label: str = ""
    dtypes: tuple[str, ...] = ()
    values: dict[str, str] = {}
    place: Place | None = None


class Passed(msgspec.Struct, frozen=True):
    """The value that a use passes for one argument."""

    argument: str
    text: str
    place: Place | None = None
    note: str = ""


class Use(msgspec.Struct, frozen=True):
    """A call, launch or task that uses an operator: its ``form``, other known details, and the values that it passes."""

    form: str
    place: Place | None = None
    text: str = ""
    passed: tuple[Passed, ...] = ()
    unresolved: str = ""


class Related(msgspec.Struct, frozen=True):
    """Another operator that this one has to do with: its in-place or out variant, its view, a kernel that it launches."""

    relation: str
    name: str
    place: Place | None = None


class Detail(msgspec.Struct, frozen=True):
    """Something that only the dialect knows of an operator."""

    name: str
    value: str
    place: Place | None = None


class Operator(msgspec.Struct, frozen=True):
    """All that is known of one operator.

    ``name`` is the one by which it is found, ``aliases`` are further ones, which others may share. ``title`` is how reports call
    it, if not by its name. ``pack`` is filled in by the engine. ``text`` is a drawing of the dialect's own.
    """

    name: str
    declaration: Declaration
    pack: str = ""
    title: str = ""
    aliases: tuple[str, ...] = ()
    implementations: tuple[Implementation, ...] = ()
    registrations: tuple[Registration, ...] = ()
    rows: tuple[WorkloadRow, ...] = ()
    uses: tuple[Use, ...] = ()
    related: tuple[Related, ...] = ()
    details: tuple[Detail, ...] = ()
    unresolved: tuple[Gap, ...] = ()
    text: str = ""

    def gaps(self) -> Iterator[Gap]:
        """Everything that is unresolved about it, part by part."""
        declaration = self.declaration
        parts: list[tuple[str, Declaration | Argument | Return | Implementation | Signature | Registration | Use]] = [
            ("declaration", declaration),
            *((f"argument `{item.name}`", item) for item in declaration.arguments or ()),
            *((f"return `{item.name}`" if item.name else "return", item) for item in declaration.returns or ()),
            *((item.role, item) for item in self.implementations),
            *((found.name, found) for item in self.implementations for found in item.signatures),
            *((item.form, item) for item in self.registrations),
            *((item.form, item) for item in self.uses),
        ]
        yield from (Gap(name, part.unresolved, part.place) for name, part in parts if part.unresolved)
        yield from self.unresolved

    def places(self) -> Iterator[Place]:
        """Places where it is declared, implemented and registered."""
        places = [self.declaration.place, *(item.place for item in self.implementations)]
        places += [item.place for item in self.registrations]
        yield from filter(None, places)

    @property
    def is_foreign(self) -> bool:
        """Whether the operator is known only from an installed package, and no part of it is in the workspace."""
        return all(place.is_foreign for place in self.places())

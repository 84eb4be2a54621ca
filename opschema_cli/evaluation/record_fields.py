"""Fields of dataclasses and named tuples, from their code."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.source.program import Program
from opschema_cli.source.python import Assign, Expr
from opschema_cli.source.resolution import ClassRef, External, Unresolved


class Field(msgspec.Struct, frozen=True):
    """A field of a dataclass; ``default`` and ``factory`` are the expressions that give its value."""

    name: str
    owner: ClassRef
    default: Expr | None = None
    factory: Expr | None = None
    in_init: bool = True
    by_name_only: bool = False
    compared: bool = True
    """Whether ``==`` certainly compares it: it has no ``compare`` option."""


def is_dataclass(program: Program, ref: ClassRef) -> bool:
    """Whether ``dataclasses.dataclass`` decorates a class."""
    return any(_named(program, ref, item) == "dataclasses.dataclass" for item in ref.cls.decorators)


def is_named_tuple(program: Program, ref: ClassRef) -> bool:
    """Whether a class is a ``typing.NamedTuple``."""
    return any(_named(program, ref, item) == "typing.NamedTuple" for item in ref.cls.bases)


def fields_of(program: Program, ref: ClassRef) -> list[Field] | None:
    """Return the fields of a dataclass or named tuple in order; None if they are not known."""
    if is_named_tuple(program, ref):
        return list(_own_fields(program, ref))
    found = program.mro(ref)
    if isinstance(found, Unresolved):
        return None
    fields: dict[str, Field] = {}
    for item in reversed(found):
        if isinstance(item, ClassRef) and is_dataclass(program, item):
            if any(_holder(program, item, found) == "dataclasses.InitVar" for found in item.cls.body.assigns):
                return None
            fields.update((field.name, field) for field in _own_fields(program, item))
    return list(fields.values())


def _named(program: Program, ref: ClassRef, expr: Expr) -> str:
    """Return the full name of an external object that an expression names or calls."""
    found = program.resolve(ref.file, expr.callee or expr.text)
    return found.name if isinstance(found, External) else ""


def _own_fields(program: Program, ref: ClassRef) -> Iterator[Field]:
    by_name_only = any(_is_true(item.keyword("kw_only")) for item in ref.cls.decorators)
    for item in ref.cls.body.assigns:
        if item.annotation is None or "." in item.target:
            continue
        holder = _holder(program, ref, item)
        if holder == "dataclasses.KW_ONLY":
            by_name_only = True
        elif holder != "typing.ClassVar":
            yield _field(program, ref, item, by_name_only)


def _holder(program: Program, ref: ClassRef, item: Assign) -> str:
    """Return the full name of an external annotation, without its subscript."""
    annotation = item.annotation
    if annotation is None:
        return ""
    return _named(program, ref, annotation.items[0] if annotation.kind == "subscript" else annotation)


def _is_true(expr: Expr | None) -> bool:
    return expr is not None and expr.value is True


def _field(program: Program, ref: ClassRef, item: Assign, by_name_only: bool) -> Field:
    value = item.value
    if value is None or value.kind != "call" or _named(program, ref, value) != "dataclasses.field":
        return Field(item.target, ref, value, None, True, by_name_only)
    in_init = value.keyword("init")
    only = by_name_only or _is_true(value.keyword("kw_only"))
    listed = in_init is None or in_init.value is not False
    default, factory = value.keyword("default"), value.keyword("default_factory")
    return Field(item.target, ref, default, factory, listed, only, compared=value.keyword("compare") is None)

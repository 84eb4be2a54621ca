"""Dataclasses: their fields, and the ``__init__`` that is generated from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from opschema_cli.evaluation.execution.classes import class_scope, member
from opschema_cli.evaluation.execution.machine import Machine, cached_by_class
from opschema_cli.evaluation.execution.values import Closure, Object, Opaque
from opschema_cli.source.python import Assign, Expr
from opschema_cli.source.resolution import ClassRef, External, Unresolved


class Field(msgspec.Struct, frozen=True):
    """A field of a dataclass; ``default`` and ``factory`` are the expressions of its value."""

    name: str
    owner: ClassRef
    default: Expr | None = None
    factory: Expr | None = None
    in_init: bool = True
    by_name_only: bool = False
    compared: bool = True
    """Whether it has no ``compare`` option."""


@cached_by_class
def is_dataclass(machine: Machine, ref: ClassRef) -> bool:
    """Whether ``dataclasses.dataclass`` decorates a class."""
    return any(_named(machine, ref, item) == "dataclasses.dataclass" for item in ref.cls.decorators)


def _named(machine: Machine, ref: ClassRef, expr: Expr) -> str:
    """The full name of what lies outside the workspace that an expression names or calls."""
    found = machine.evaluator.program.resolve(ref.file, expr.callee or expr.text)
    return found.name if isinstance(found, External) else ""


@cached_by_class
def fields_of(machine: Machine, ref: ClassRef) -> list[Field] | None:
    """The fields of a dataclass in their order; None where they are not known."""
    found = machine.evaluator.program.mro(ref)
    if isinstance(found, Unresolved):
        return None
    fields: dict[str, Field] = {}
    for item in reversed(found):
        if isinstance(item, ClassRef) and is_dataclass(machine, item):
            fields.update((field.name, field) for field in _own_fields(machine, item))
    return list(fields.values())


@cached_by_class
def compared_fields(machine: Machine, ref: ClassRef) -> list[Field] | None:
    """The fields that the generated ``__eq__`` of a class compares; None if its ``__eq__`` is not one of a dataclass."""
    for item in machine.evaluator.program.lineage(ref):
        if item.cls.body.named.get("__eq__"):
            return None
        if is_dataclass(machine, item):
            plain = not any(found.keyword("eq") for found in item.cls.decorators)
            fields = fields_of(machine, item) if plain else None
            return fields if fields and all(field.compared for field in fields) else None
    return None


def _own_fields(machine: Machine, ref: ClassRef) -> Iterator[Field]:
    by_name_only = any(_is_true(item.keyword("kw_only")) for item in ref.cls.decorators)
    for item in ref.cls.body.assigns:
        if item.annotation is None or "." in item.target:
            continue
        kind = _named(machine, ref, item.annotation)
        holder = item.annotation.items[0] if item.annotation.kind == "subscript" else item.annotation
        if kind == "dataclasses.KW_ONLY":
            by_name_only = True
        elif _named(machine, ref, holder) != "typing.ClassVar":
            yield _field(machine, ref, item, by_name_only)


def _is_true(expr: Expr | None) -> bool:
    return expr is not None and expr.value is True


def _field(machine: Machine, ref: ClassRef, item: Assign, by_name_only: bool) -> Field:
    value = item.value
    if value is None or value.kind != "call" or _named(machine, ref, value) != "dataclasses.field":
        return Field(item.target, ref, value, None, True, by_name_only)
    in_init = value.keyword("init")
    only = by_name_only or _is_true(value.keyword("kw_only"))
    listed = in_init is None or in_init.value is not False
    default, factory = value.keyword("default"), value.keyword("default_factory")
    return Field(item.target, ref, default, factory, listed, only, compared=value.keyword("compare") is None)


def initialised(
    machine: Machine, this: Object, ref: ClassRef, positional: Sequence[object], keywords: Mapping[str, object]
) -> None:
    """Do what the generated ``__init__`` of a dataclass does to an object."""
    fields = fields_of(machine, ref)
    if fields is None:
        machine.stop("a dataclass whose fields are not known")
    in_init = [item for item in fields if item.in_init]
    placed = [item.name for item in in_init if not item.by_name_only]
    if len(positional) > len(placed):
        machine.throw("TypeError")
    given = dict(zip(placed, positional, strict=False))
    if set(keywords) & set(given) or set(keywords) - {item.name for item in in_init}:
        machine.throw("TypeError")
    given.update(keywords)
    for item in fields:
        if item.name in given:
            this.attributes[item.name] = given[item.name]
        elif not _defaulted(machine, this, item) and item.in_init:
            machine.throw("TypeError")
    after = member(machine, this.cls, "__post_init__")
    if isinstance(after, Opaque):
        machine.stop(after.reason)
    if isinstance(after, Closure):
        machine.call(after, (this,), {})


def _defaulted(machine: Machine, this: Object, item: Field) -> bool:
    """Give a field its default; False when it has none."""
    scope = class_scope(machine, item.owner)
    if item.factory is not None:
        this.attributes[item.name] = machine.call(machine.evaluate(scope, item.factory), (), {})
    elif item.default is not None:
        this.attributes[item.name] = machine.evaluate(scope, item.default)
    return item.factory is not None or item.default is not None

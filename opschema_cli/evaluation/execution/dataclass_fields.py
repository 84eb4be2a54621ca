"""Dataclasses: their generated ``__init__``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opschema_cli.evaluation import record_fields
from opschema_cli.evaluation.execution.classes import class_scope, member
from opschema_cli.evaluation.execution.machine import Machine, cached_by_class
from opschema_cli.evaluation.execution.values import Closure, Object, Opaque
from opschema_cli.evaluation.record_fields import Field
from opschema_cli.source.resolution import ClassRef


@cached_by_class
def is_dataclass(machine: Machine, ref: ClassRef) -> bool:
    """Whether ``dataclasses.dataclass`` decorates a class."""
    return record_fields.is_dataclass(machine.evaluator.program, ref)


@cached_by_class
def fields_of(machine: Machine, ref: ClassRef) -> list[Field] | None:
    """Return the fields of a dataclass in order; None if they are not known."""
    return record_fields.fields_of(machine.evaluator.program, ref)


@cached_by_class
def compared_fields(machine: Machine, ref: ClassRef) -> list[Field] | None:
    """Return the fields that the generated ``__eq__`` of a class compares; None if its ``__eq__`` is not generated."""
    for item in machine.evaluator.program.lineage(ref):
        if item.cls.body.named.get("__eq__"):
            return None
        if is_dataclass(machine, item):
            plain = not any(found.keyword("eq") for found in item.cls.decorators)
            fields = fields_of(machine, item) if plain else None
            return fields if fields and all(field.compared for field in fields) else None
    return None


def initialised(
    machine: Machine, this: Object, ref: ClassRef, positional: Sequence[object], keywords: Mapping[str, object]
) -> None:
    """Apply the generated ``__init__`` of a dataclass to an object."""
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
    """Set a field to its default. Return False if it has none."""
    scope = class_scope(machine, item.owner)
    if item.factory is not None:
        this.attributes[item.name] = machine.call(machine.evaluate(scope, item.factory), (), {})
    elif item.default is not None:
        this.attributes[item.name] = machine.evaluate(scope, item.default)
    return item.factory is not None or item.default is not None

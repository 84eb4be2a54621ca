"""Named tuples: those of ``collections.namedtuple``, and of classes that inherit from ``typing.NamedTuple``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opschema_cli.evaluation.execution.classes import ABSENT, class_scope, member
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call
from opschema_cli.evaluation.execution.machine import Machine, cached_by_class
from opschema_cli.evaluation.execution.objects import bound
from opschema_cli.evaluation.execution.values import Closure, Native, Opaque, Record, RecordClass, ValueMethod
from opschema_cli.evaluation.values import ClassValue
from opschema_cli.source.python import Assign
from opschema_cli.source.resolution import ClassRef, External

_BASE = "typing.NamedTuple"


def named_tuple(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the class of ``collections.namedtuple(name, fields)``."""
    given = dict(zip(("typename", "field_names"), positional, strict=False)) | keywords
    name, fields = given.pop("typename", None), given.pop("field_names", None)
    defaults = given.pop("defaults", ()) or ()
    if given or len(positional) > 2 or not isinstance(name, str) or not isinstance(defaults, tuple | list):
        return NOT_KNOWN
    names = fields.replace(",", " ").split() if isinstance(fields, str) else fields
    if not isinstance(names, list | tuple) or not all(isinstance(item, str) for item in names):
        return NOT_KNOWN
    plain = all(item.isidentifier() and not item.startswith("_") for item in names) and len(set(names)) == len(names)
    return RecordClass(name, tuple(names), tuple(defaults)) if plain else machine.throw("ValueError")


def made_record(
    machine: Machine, cls: RecordClass, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Return a named tuple of a class made by ``collections.namedtuple``."""
    defaults = cls.fields[len(cls.fields) - len(cls.defaults) :]
    return _filled(machine, cls, cls.fields, dict(zip(defaults, cls.defaults, strict=True)), positional, keywords)


def of_class(machine: Machine, cls: ClassValue, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
    """Return a named tuple of a workspace class; unknown if the class is not a named tuple class."""
    ref = _named_tuple_class(machine, cls.ref)
    if ref is None or ref.cls.decorators or isinstance(member(machine, cls, "__new__"), Closure):
        return NOT_KNOWN
    fields = _fields(ref)
    scope = class_scope(machine, ref)
    defaults = {item.target: machine.evaluate(scope, item.value) for item in fields if item.value is not None}
    return _filled(machine, cls, tuple(item.target for item in fields), defaults, positional, keywords)


@cached_by_class
def _named_tuple_class(machine: Machine, cls: ClassRef) -> ClassRef | None:
    """Return the class in a lineage whose base is ``typing.NamedTuple``."""
    program = machine.evaluator.program
    for ref in program.lineage(cls):
        if any(program.resolve(ref.file, base.text) == External(_BASE) for base in ref.cls.bases):
            return ref
    return None


def _fields(ref: ClassRef) -> list[Assign]:
    return [item for item in ref.cls.body.assigns if item.annotation is not None and "." not in item.target]


def _filled(
    machine: Machine,
    cls: ClassValue | RecordClass,
    fields: tuple[str, ...],
    defaults: Mapping[str, object],
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Return a named tuple from the arguments of a call."""
    placed = dict(zip(fields, positional, strict=False))
    values = {**defaults, **placed, **keywords}
    if len(positional) > len(fields) or set(placed) & set(keywords) or set(values) != set(fields):
        machine.throw("TypeError")
    return Record.of(cls, fields, [values[name] for name in fields])


# Attributes


def record_attribute(machine: Machine, value: Record | RecordClass, name: str) -> object:
    """Return an attribute of a named tuple or its class."""
    if name == "_fields":
        return value.fields
    if isinstance(value, RecordClass):
        return _of_class(machine, value, name)
    if name in value.fields:
        return value[value.fields.index(name)]
    if name in ("index", "count"):
        return ValueMethod(value, name)
    if name == "_asdict":
        return Native(name, lambda call: dict(zip(value.fields, value, strict=True)))
    if name == "_replace":
        return Native(name, lambda call: _replaced(machine, value, call))
    return _of_own_class(machine, value, name)


def _of_class(machine: Machine, cls: RecordClass, name: str) -> object:
    if name == "__name__":
        return cls.name
    if name == "_make":
        return Native(name, lambda call: machine.call(cls, tuple(machine.iterate(call.positional[0])), {}))
    return machine.opaque(f"the attribute `{name}` of a named tuple's class")


def _replaced(machine: Machine, value: Record, call: Call) -> object:
    if not set(call.keywords) <= set(value.fields):
        machine.throw("ValueError")
    own = dict(zip(value.fields, value, strict=True))
    return value.rebuilt({**own, **call.keywords}.values())


def _of_own_class(machine: Machine, value: Record, name: str) -> object:
    found = member(machine, value.cls, name) if isinstance(value.cls, ClassValue) else ABSENT
    if isinstance(found, Opaque) or name.startswith("_"):
        return machine.opaque(f"the attribute `{name}` of a named tuple")
    if found is ABSENT:
        machine.throw("AttributeError")
    return bound(machine, value, found, name)

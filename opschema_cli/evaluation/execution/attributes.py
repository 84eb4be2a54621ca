"""Attributes of values."""

from __future__ import annotations

from opschema_cli.evaluation.execution.classes import ABSENT, class_attribute, member
from opschema_cli.evaluation.execution.comparisons import BUILTIN_TYPES
from opschema_cli.evaluation.execution.conversion import argument, external
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.error_names import ERRORS
from opschema_cli.evaluation.execution.instances import type_of
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import METHODS
from opschema_cli.evaluation.execution.names import member_of_module
from opschema_cli.evaluation.execution.objects import (
    bound,
    is_managed,
    object_attribute,
    set_attribute,
    super_attribute,
)
from opschema_cli.evaluation.execution.plain import performed
from opschema_cli.evaluation.execution.records import record_attribute
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    ErrorValue,
    Object,
    Opaque,
    PartialCall,
    Record,
    RecordClass,
    SuperValue,
    ValueMethod,
)
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName, ModuleValue
from opschema_cli.source.bodies import Body

_FIELDS = {
    slice: ("start", "stop", "step"),
    range: ("start", "stop", "step"),
    int: ("real", "imag", "numerator", "denominator"),
}
_FIELDS[bool] = _FIELDS[int]
_OF_WRAPPERS = frozenset({"cache_clear", "cache_info", "cache_parameters", "dispatch", "register", "registry"})
"""Attributes of functions wrapped by ``functools``."""


def attribute_of(machine: Machine, value: object, name: str) -> object:
    """Return the attribute ``name`` of a value."""
    machine.spend(1)
    match value:
        case Opaque():
            return value
        case Object():
            return object_attribute(machine, value, name)
        case ClassValue():
            return class_attribute(machine, value, name)
        case ModuleValue():
            return _of_module(machine, value, name)
        case ExternalName():
            is_type = name in ("__name__", "__qualname__") and value.name in BUILTIN_TYPES | ERRORS
            return value.name if is_type else external(machine, f"{value.name}.{name}")
        case EnumMember():
            return _of_member(machine, value, name)
        case SuperValue():
            return super_attribute(machine, value, name)
        case Closure() | BoundMethod() | PartialCall():
            return _of_function(machine, value, name)
        case ErrorValue():
            return _of_error(machine, value, name)
    return _of_other(machine, value, name)


def _of_module(machine: Machine, value: ModuleValue, name: str) -> object:
    if name == "__name__":
        return machine.evaluator.program.module_name(value.path)
    return member_of_module(machine, value.path, name)


def _of_member(machine: Machine, value: EnumMember, name: str) -> object:
    if name in ("value", "_value_"):
        return argument(machine, value.argument)
    if name in ("name", "_name_"):
        return value.name
    if name == "__class__":
        return ClassValue(value.ref)
    found = member(machine, ClassValue(value.ref), name)
    if found is ABSENT:
        return machine.opaque(f"the attribute `{name}` of a member of `{value.ref.name}`")
    return bound(machine, value, found, name)


def _of_function(machine: Machine, value: Closure | BoundMethod | PartialCall, name: str) -> object:
    if isinstance(value, BoundMethod):
        fields = {"__self__": value.this, "__func__": value.function}
        return fields[name] if name in fields else machine.attribute(value.function, name)
    if isinstance(value, PartialCall):
        partial = {"func": value.function, "args": value.positional, "keywords": value.keywords}
        return partial.get(name, machine.opaque("an attribute of a partial"))
    if name in value.attributes:
        return value.attributes[name]
    if name == "__name__" and value.body.function is not None:
        return _name(value.body)
    if name == "__qualname__":
        return machine.opaque("a qualified name")
    if (
        name.startswith("__")
        or name in _OF_WRAPPERS
        or (value.body.function is not None and value.body.function.decorators)
    ):
        return machine.opaque(f"the attribute `{name}` of a function")
    return machine.throw("AttributeError", f"'function' object has no attribute '{name}'")


def _name(body: Body) -> str:
    lambdas = body.parent.scope.lambdas if body.parent is not None else ()
    is_lambda = any(item is body.function for item in lambdas)
    return "<lambda>" if is_lambda or body.function is None else body.function.name


def _of_error(machine: Machine, value: ErrorValue, name: str) -> object:
    if name == "args":
        return value.arguments
    if name in value.attributes:
        return value.attributes[name]
    return machine.opaque(f"the attribute `{name}` of an exception")


def _of_other(machine: Machine, value: object, name: str) -> object:
    if isinstance(value, Record | RecordClass):
        return record_attribute(machine, value, name)
    for dialect in machine.dialects:
        found = dialect.attribute(machine, value, name)
        if found is not NOT_KNOWN:
            return found
    if name == "__class__":
        return type_of(machine, [value], {})
    if name in METHODS.get(type(value), ()):
        return ValueMethod(value, name)
    if name in _FIELDS.get(type(value), ()):
        return performed(machine, lambda: getattr(value, name))
    if name.startswith("__") or type(value) not in METHODS:
        return machine.opaque(f"the attribute `{name}` of a value")
    if hasattr(type(value), name):
        return machine.opaque(f"the method `{name}`")
    return machine.throw("AttributeError", f"'{type(value).__name__}' object has no attribute '{name}'")


def assign_attribute(machine: Machine, value: object, name: str, new: object) -> None:
    """Assign to an attribute."""
    new = machine.written(new)
    match value:
        case Object():
            set_attribute(machine, value, name, new)
        case ClassValue():
            machine.class_attributes[value.ref.key, name] = new
        case ModuleValue():
            machine.globals[value.path, name] = new
        case Closure() | ErrorValue():
            value.attributes[name] = new
        case _ if type(value) in METHODS:
            machine.throw("AttributeError", f"'{type(value).__name__}' object has no attribute '{name}'")


def delete_attribute(machine: Machine, value: object, name: str) -> None:
    """Delete an attribute."""
    hook = member(machine, value.cls, "__delattr__") if isinstance(value, Object) else ABSENT
    if not isinstance(value, Object) or isinstance(hook, Closure) or is_managed(machine, value, name):
        machine.stop("an attribute is deleted")
    if name not in value.attributes and value.complete:
        machine.throw("AttributeError", name)
    value.attributes.pop(name, None)

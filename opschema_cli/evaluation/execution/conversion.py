"""Converts values of the evaluator to values of executed code."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import is_hashable
from opschema_cli.evaluation.execution.values import Closure, Environment, PartialCall
from opschema_cli.evaluation.values import (
    BoundArgument,
    ClassValue,
    EnumMember,
    ExternalName,
    Frame,
    Func,
    Items,
    ModuleValue,
    Partial,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    Values,
)

_CONSTANTS: dict[str, object] = {
    "NotImplemented": NotImplemented,
    "Ellipsis": ...,
    "__debug__": True,
    "typing.TYPE_CHECKING": False,
    "typing_extensions.TYPE_CHECKING": False,
}


def external(machine: Machine, name: str) -> object:
    """Return the value of a name outside the workspace."""
    known = machine.shared.externals
    if name not in known:
        known[name] = _external(machine, name)
    return known[name]


def _external(machine: Machine, name: str) -> object:
    for dialect in machine.dialects:
        found = dialect.value(name)
        if found is not NOT_KNOWN:
            return found
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    value = machine.evaluator.external(name)
    return value.value if isinstance(value, Plain) else ExternalName(name)


def converted(machine: Machine, values: Values) -> object:
    """Return the only possible value of an expression; opaque if it may have several."""
    machine.spend(1)
    if len(values) != 1:
        return machine.opaque("it may be one of several values")
    return _converted(machine, values[0])


def _converted(machine: Machine, value: Value) -> object:
    match value:
        case Plain():
            return value.value
        case Text():
            known = value.names is not None and len(value.names) == 1
            return min(value.names or ()) if known else machine.opaque("it may be one of several strings")
        case ClassValue():
            return value if not value.below else machine.opaque("it may be any class below another one")
        case ModuleValue() | EnumMember():
            return value
        case ExternalName():
            return external(machine, value.name)
        case Func():
            return closure_of(machine, value)
        case Items() | Table():
            return _container(machine, value)
        case Partial():
            return _partial(machine, value)
        case Unknown():
            return machine.opaque(value.reason)
    return machine.opaque("a value that is not executed")


def _container(machine: Machine, value: Items | Table) -> object:
    if value.open:
        return machine.opaque("a container that code changes")
    if isinstance(value, Table):
        return {key: argument(machine, item) for key, item in value.entries}
    elements = [argument(machine, item) for item in value.elements]
    if value.kind == "set":
        return _set(machine, elements)
    return tuple(elements) if value.kind == "tuple" else elements


def _set(machine: Machine, elements: Iterable[object]) -> object:
    found = list(elements)
    known = all(is_hashable(machine, item) is True for item in found)
    return set(found) if known else machine.opaque("a set whose elements are not known")


def argument(machine: Machine, item: BoundArgument) -> object:
    """Return the value of an argument that the evaluator bound."""
    return converted(machine, machine.evaluator.values(item))


def _partial(machine: Machine, value: Partial) -> object:
    if value.arguments.open:
        return machine.opaque("a call with arguments that are not known")
    positional = tuple(argument(machine, item) for item in value.arguments.positional)
    words = {name: argument(machine, item) for name, item in value.arguments.keywords.items()}
    return PartialCall(_converted(machine, value.target), positional, words)


def closure_of(machine: Machine, value: Func) -> Closure:
    """Return a function of the evaluator with the variables of the enclosing frames."""
    return Closure(value.body, framed(machine, value.frame))


def framed(machine: Machine, frame: Frame) -> Environment | None:
    """Return the variables of an evaluated function; None for a module or class."""
    if frame.body.function is None:
        return framed(machine, frame.parent) if frame.parent is not None else None
    names = machine.names_of(frame.body)
    outer = framed(machine, frame.parent) if frame.parent is not None else None
    return Environment(frame.body, {}, names, outer, False, frame)


def value_in_frame(machine: Machine, scope: Environment, name: str) -> object:
    """Return the value of a variable of an evaluated function."""
    if scope.frame is None:
        return machine.opaque(f"`{name}` is not bound")
    if name not in scope.variables:
        scope.variables[name] = converted(machine, machine.evaluator.lookup(scope.frame, name))
    return scope.variables[name]

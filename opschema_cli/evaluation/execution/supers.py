"""``super()`` with and without arguments."""

from __future__ import annotations

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.values import Environment, SuperValue
from opschema_cli.evaluation.values import ClassValue


def super_of(machine: Machine, scope: Environment) -> object:
    """Return the value of ``super()`` in a method."""
    method = scope.body.method
    current: Environment | None = scope
    while current is not None and current.body is not method:
        current = current.parent
    if method is None or method.owner is None or current is None or not method.params:
        return machine.opaque("`super()` outside a method")
    first = method.params[0].name
    if first not in current.variables:
        return machine.opaque("`super()` outside a method")
    return SuperValue(ClassValue(method.owner), current.variables[first])


def super_with(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the value of ``super(cls, this)``."""
    if len(positional) != 2 or not isinstance(positional[0], ClassValue):
        return machine.opaque("`super()` outside a method")
    return SuperValue(positional[0], positional[1])

"""``raise``: converts a value to an exception."""

from __future__ import annotations

from typing import NoReturn

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.signals import Thrown
from opschema_cli.evaluation.execution.values import ErrorValue, Object, Opaque
from opschema_cli.evaluation.values import ClassValue, ExternalName


def raised(machine: Machine, value: object, *, bare: bool) -> NoReturn:
    """Raise a value, or with ``bare`` the exception that is being handled."""
    place = machine.place
    if bare:
        if not machine.handling:
            machine.throw("RuntimeError", "No active exception to reraise")
        raise Thrown(machine.handling[-1], place)
    if isinstance(value, ClassValue | ExternalName):
        made = machine.call(value, (), {})
        value = made if not isinstance(made, Opaque) or isinstance(value, ClassValue) else ErrorValue(value.name)
    if isinstance(value, ErrorValue | Object):
        raise Thrown(value, place)
    if isinstance(value, Opaque):
        raise Thrown(ErrorValue("", (value,)), place)
    machine.throw("TypeError", "exceptions must derive from BaseException")

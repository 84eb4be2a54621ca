"""``getattr``, ``hasattr``, ``setattr`` and ``delattr``."""

from __future__ import annotations

from opschema_cli.evaluation.execution.attributes import assign_attribute, attribute_of, delete_attribute
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.signals import Thrown
from opschema_cli.evaluation.execution.values import ErrorValue, Opaque
from opschema_cli.evaluation.values import ExternalName


def getattr_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the result of ``getattr(value, name, default)``."""
    value, name, *default = positional
    if not isinstance(name, str):
        return machine.opaque("an attribute whose name is not known")
    try:
        found = attribute_of(machine, value, name)
    except Thrown as thrown:
        if not default or not _is_missing(thrown):
            raise
        return default[0]
    if default and isinstance(found, ExternalName):
        return machine.opaque(f"`{found.name}` may be missing")
    return found


def _is_missing(thrown: Thrown) -> bool:
    return isinstance(thrown.error, ErrorValue) and thrown.error.name == "AttributeError"


def hasattr_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Return the result of ``hasattr(value, name)``."""
    value, name = positional
    if not isinstance(name, str):
        return machine.opaque("an attribute whose name is not known")
    try:
        found = attribute_of(machine, value, name)
    except Thrown as thrown:
        if not _is_missing(thrown):
            raise
        return False
    return machine.opaque(f"whether `{name}` is there") if isinstance(found, Opaque | ExternalName) else True


def setattr_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Execute ``setattr(value, name, new)``."""
    value, name, new = positional
    if not isinstance(name, str):
        machine.stop("an attribute whose name is not known is set")
    assign_attribute(machine, value, name, new)
    return None


def delattr_of(machine: Machine, positional: list[object], keywords: dict[str, object]) -> object:
    """Execute ``delattr(value, name)``."""
    value, name = positional
    if not isinstance(name, str):
        return NOT_KNOWN
    delete_attribute(machine, value, name)
    return None

"""Truth of values."""

from __future__ import annotations

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import CONTAINERS, Identical, asked, is_scalar
from opschema_cli.evaluation.execution.values import BoundMethod, Object, Opaque, PartialCall, Running, ValueMethod
from opschema_cli.evaluation.values import EnumMember, ExternalName


def truth_of(machine: Machine, value: object) -> bool | Opaque:
    """Whether a value is true."""
    if isinstance(value, Opaque | bool):
        return value
    if isinstance(value, Object):
        return _of_object(machine, value)
    if isinstance(value, CONTAINERS):
        tainted = id(value) in machine.tainted
        return machine.opaque("a container whose contents are not known") if tainted else bool(value)
    if is_scalar(value):
        return bool(value) if value is not NotImplemented else machine.opaque("`NotImplemented`")
    if isinstance(value, EnumMember):
        return machine.opaque("the truth of a member of an enumeration")
    if isinstance(value, Identical | BoundMethod | PartialCall | ValueMethod | Running):
        return True
    if isinstance(value, ExternalName):
        return machine.outside(value)
    found = asked(machine, "bool", (value,))
    return (
        found
        if found is not NOT_KNOWN and isinstance(found, bool | Opaque)
        else machine.opaque("its truth is not known")
    )


def _of_object(machine: Machine, value: Object) -> bool | Opaque:
    for name in ("__bool__", "__len__"):
        method = machine.special(value, name)
        if isinstance(method, Opaque):
            return method if not value.complete else True
        if method is not None:
            found = machine.call(method, (), {})
            return found if isinstance(found, Opaque) else bool(found)
    return True

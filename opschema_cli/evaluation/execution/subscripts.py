"""Items of containers: reading, writing and deleting them."""

from __future__ import annotations

import operator

from opschema_cli.evaluation.enums import member_named
from opschema_cli.evaluation.execution.classes import bound_to_class, is_complete, member
from opschema_cli.evaluation.execution.comparisons import contains_key
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import set_of
from opschema_cli.evaluation.execution.plain import CONTAINERS, asked, is_plain, performed
from opschema_cli.evaluation.execution.values import BoundMethod, Environment, Object, Opaque
from opschema_cli.evaluation.values import ClassValue, ExternalName
from opschema_cli.source.python import Expr


def index_of(machine: Machine, scope: Environment, expr: Expr) -> object:
    """Return the index of a subscript: one value, or a tuple of several."""
    found: list[object] = []
    for item in expr.items[1:]:
        value = machine.evaluate(scope, item.items[0] if item.kind == "starred" else item)
        if item.kind != "starred":
            found.append(value)
        elif isinstance(value, Opaque):
            return value
        else:
            found.extend(machine.iterate(value))
    machine.at(scope.body, expr)
    return found[0] if len(expr.items) == 2 else tuple(found)


def item_of(machine: Machine, holder: object, index: object) -> object:
    """Return the value of ``holder[index]``."""
    if isinstance(holder, Opaque) or id(holder) in machine.tainted:
        found = asked(machine, "[]", (holder, index))
        unknown = holder if isinstance(holder, Opaque) else machine.opaque("a container whose contents are not known")
        return found if found is not NOT_KNOWN else unknown
    if isinstance(holder, dict):
        return _of_dict(machine, holder, index)
    if isinstance(holder, list | tuple | str | range | bytes):
        return _of_sequence(machine, holder, index)
    if isinstance(holder, ClassValue):
        return _of_class(machine, holder, index)
    if isinstance(holder, Object):
        method = machine.special(holder, "__getitem__")
        return machine.opaque("an item of an object") if method is None else machine.call(method, (index,), {})
    found = asked(machine, "[]", (holder, index))
    if found is not NOT_KNOWN:
        return found
    if holder is None or isinstance(holder, int | float | set | frozenset):
        machine.throw("TypeError", f"'{type(holder).__name__}' object is not subscriptable")
    if isinstance(holder, ExternalName):
        return machine.opaque(f"an item of `{holder.name}`")
    return machine.opaque("an item of a value that is not known")


def _of_dict(machine: Machine, holder: dict[object, object], index: object) -> object:
    known = contains_key(machine, holder, index)
    if isinstance(known, Opaque):
        return known
    if not known:
        machine.throw("KeyError", index)
    return holder[index]


def _of_sequence(
    machine: Machine, holder: list[object] | tuple[object, ...] | str | range | bytes, index: object
) -> object:
    if isinstance(index, Opaque):
        return index
    if isinstance(index, slice):
        if not all(part is None or isinstance(part, int) for part in (index.start, index.stop, index.step)):
            return machine.opaque("a slice whose bounds are not known")
        machine.spend(len(holder) // 10 if not isinstance(holder, range) else 0)
        return performed(machine, lambda: holder[index])
    if isinstance(index, int) or is_plain(machine, index):
        return performed(machine, lambda: operator.getitem(holder, index))  # type: ignore[misc]
    return machine.opaque("an item whose index is not known")


def _of_class(machine: Machine, holder: ClassValue, index: object) -> object:
    if machine.evaluator.members(holder.ref):
        found = member_named(machine.evaluator, holder.ref, index)
        return found if found is not None else machine.opaque("a member of an enumeration")
    method = bound_to_class(machine, holder, member(machine, holder, "__class_getitem__"))
    if isinstance(method, BoundMethod):
        return machine.call(method, (index,), {})
    return holder if is_complete(machine, holder.ref) else machine.opaque(f"an item of `{holder.ref.name}`")


def set_item(machine: Machine, holder: object, index: object, value: object) -> None:
    """Execute ``holder[index] = value``; an unknown index makes the contents of the container unknown."""
    machine.changes(holder)
    if isinstance(holder, dict):
        known = contains_key(machine, holder, index) if holder else _hashable(machine, index)
        if isinstance(known, Opaque):
            machine.taint(holder)
        else:
            machine.spend(1)
            holder[index] = value
    elif isinstance(holder, list):
        _set_in_list(machine, holder, index, value)
    elif isinstance(holder, Object):
        method = machine.special(holder, "__setitem__")
        if method is not None:
            machine.call(method, (index, value), {})
    elif isinstance(holder, CONTAINERS) or holder is None or isinstance(holder, str | int | float):
        machine.throw("TypeError", f"'{type(holder).__name__}' object does not support item assignment")


def _hashable(machine: Machine, index: object) -> bool | Opaque:
    found = set_of(machine, (index,))
    return found if isinstance(found, Opaque) else True


def _set_in_list(machine: Machine, holder: list[object], index: object, value: object) -> None:
    if isinstance(index, Opaque) or not is_plain(machine, index):
        machine.taint(holder)
    elif isinstance(index, slice):
        if isinstance(value, Opaque):
            machine.taint(holder)
            return
        elements = list(machine.iterate(value))
        machine.spend(len(elements))
        performed(machine, lambda: holder.__setitem__(index, elements))
    else:
        performed(machine, lambda: operator.setitem(holder, index, value))  # type: ignore[call-overload]


def delete_item(machine: Machine, holder: object, index: object) -> None:
    """Execute ``del holder[index]``."""
    machine.changes(holder)
    if isinstance(holder, dict):
        known = contains_key(machine, holder, index)
        if isinstance(known, Opaque):
            machine.taint(holder)
        elif known:
            del holder[index]
        else:
            machine.throw("KeyError", index)
    elif isinstance(holder, list) and is_plain(machine, index):
        performed(machine, lambda: holder.__delitem__(index))  # type: ignore[arg-type]
    else:
        machine.stop("an item is deleted")

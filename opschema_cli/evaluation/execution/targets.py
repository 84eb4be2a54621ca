"""Assignment to names, attributes, items, and several targets at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from opschema_cli.evaluation.execution.attributes import assign_attribute, delete_attribute
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.scopes import bind_name, holder_of
from opschema_cli.evaluation.execution.signals import UnknownElementsError
from opschema_cli.evaluation.execution.subscripts import delete_item, index_of, item_of, set_item
from opschema_cli.evaluation.execution.values import Environment, Opaque
from opschema_cli.source.python import Expr


def assign(machine: Machine, scope: Environment, target: Expr, value: object) -> None:
    """Assign a value to a target."""
    if target.kind == "name" and "." not in target.text:
        bind_name(machine, scope, target.text, value)
    elif target.kind in ("tuple", "list"):
        _unpack(machine, scope, target.items, value)
    elif target.kind == "subscript":
        holder = machine.evaluate(scope, target.items[0])
        set_item(machine, holder, index_of(machine, scope, target), value)
    elif target.kind == "starred":
        assign(machine, scope, target.items[0], value)
    elif (owner := target.owner) is not None:
        holder = machine.evaluate(scope, owner)
        machine.at(scope.body, target)
        assign_attribute(machine, holder, target.member, value)
    else:
        machine.stop("an assignment that is not followed")


def _unpack(machine: Machine, scope: Environment, targets: Sequence[Expr], value: object) -> None:
    if isinstance(value, Opaque) or id(value) in machine.tainted:
        for target in targets:
            assign(machine, scope, target, machine.opaque("a part of a value that is not known"))
        return
    try:
        elements = list(machine.iterate(value))
    except UnknownElementsError as unknown:
        _unpack(machine, scope, targets, machine.opaque(unknown.reason))
        return
    starred = [index for index, target in enumerate(targets) if target.kind == "starred"]
    if len(elements) != len(targets) and (not starred or len(elements) < len(targets) - 1):
        machine.throw("ValueError", _count_message(len(elements), len(targets), bool(starred)))
    if starred:
        first, rest = starred[0], len(targets) - starred[0] - 1
        end = len(elements) - rest
        elements = [*elements[:first], elements[first:end], *elements[end:]]
    for target, item in zip(targets, elements, strict=True):
        assign(machine, scope, target, item)


def _count_message(count: int, wanted: int, starred: bool) -> str:
    if starred:
        return f"not enough values to unpack (expected at least {wanted - 1}, got {count})"
    if count > wanted:
        return f"too many values to unpack (expected {wanted})"
    return f"not enough values to unpack (expected {wanted}, got {count})"


class Variable(msgspec.Struct, frozen=True, eq=False):
    """A variable as the target of an assignment."""

    scope: Environment
    expr: Expr

    def read(self, machine: Machine) -> object:
        """Return its value."""
        return machine.evaluate(self.scope, self.expr)

    def write(self, machine: Machine, value: object) -> None:
        """Set its value."""
        bind_name(machine, self.scope, self.expr.text, value)


class Attribute(msgspec.Struct, frozen=True, eq=False):
    """An attribute as the target of an assignment."""

    holder: object
    name: str

    def read(self, machine: Machine) -> object:
        """Return its value."""
        return machine.attribute(self.holder, self.name)

    def write(self, machine: Machine, value: object) -> None:
        """Set its value."""
        assign_attribute(machine, self.holder, self.name, value)


class Element(msgspec.Struct, frozen=True, eq=False):
    """An item as the target of an assignment."""

    holder: object
    index: object

    def read(self, machine: Machine) -> object:
        """Return its value."""
        return item_of(machine, self.holder, self.index)

    def write(self, machine: Machine, value: object) -> None:
        """Set its value."""
        set_item(machine, self.holder, self.index, value)


def place_of(machine: Machine, scope: Environment, target: Expr) -> Variable | Attribute | Element:
    """Return the place that a target refers to; its parts are evaluated once."""
    if target.kind == "subscript":
        holder = machine.evaluate(scope, target.items[0])
        return Element(holder, index_of(machine, scope, target))
    owner = target.owner
    return Attribute(machine.evaluate(scope, owner), target.member) if owner is not None else Variable(scope, target)


def delete(machine: Machine, scope: Environment, target: Expr) -> None:
    """Delete a name, attribute or item."""
    if target.kind in ("tuple", "list"):
        for item in target.items:
            delete(machine, scope, item)
    elif target.kind == "subscript":
        delete_item(machine, machine.evaluate(scope, target.items[0]), index_of(machine, scope, target))
    elif (owner := target.owner) is not None:
        delete_attribute(machine, machine.evaluate(scope, owner), target.member)
    else:
        holder = holder_of(scope, target.text)
        if holder is None:
            machine.stop("a global is deleted")
        if target.text not in holder.variables:
            machine.throw("UnboundLocalError")
        del holder.variables[target.text]

"""Iteration over values."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView

from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import asked
from opschema_cli.evaluation.execution.signals import UnknownElementsError
from opschema_cli.evaluation.execution.values import Object, Opaque, Running
from opschema_cli.evaluation.values import ClassValue


def elements_of(machine: Machine, value: object, *, ordered: bool = True) -> Iterator[object]:
    """Yield the elements of an iterable; those of a set only if their order does not matter (``ordered`` is false) or is known."""
    if isinstance(value, Opaque):
        raise UnknownElementsError(f"iteration over {value.reason}", machine.place)
    if id(value) in machine.tainted:
        raise UnknownElementsError("iteration over a container whose contents are not known", machine.place)
    if isinstance(value, set | frozenset) and ordered and len(value) > 1 and not _has_sure_order(value):
        raise UnknownElementsError("iteration over a set", machine.place)
    if isinstance(value, list | tuple | frozenset | str | bytes):
        return iter(value)
    if isinstance(value, range | dict | set | KeysView | ValuesView | ItemsView):
        return _stepped(machine, value)
    if isinstance(value, Running):
        if machine.joins and id(value) not in machine.born:
            machine.not_joined(machine.joins[0])
        return _stepped(machine, value.iterator)
    if isinstance(value, Object):
        return _of_object(machine, value)
    if isinstance(value, ClassValue):
        members = machine.evaluator.members(value.ref)
        return iter(members) if members else machine.stop("iteration over a class")
    return _of_other(machine, value)


def _has_sure_order(value: set[object] | frozenset[object]) -> bool:
    """Whether the order of a set is the same in each run, as for small numbers."""
    return all(type(item) is int and 0 <= item < len(value) for item in value)


def _stepped(machine: Machine, values: Iterable[object]) -> Iterator[object]:
    """Yield the elements of an iterable that may fail during iteration."""
    iterator = iter(values)
    while True:
        machine.spend(1)
        try:
            value = next(iterator)
        except StopIteration:
            return
        except (RuntimeError, ValueError) as error:
            if isinstance(error, RecursionError):
                raise
            machine.stop("a container changes while it is iterated over")
        yield value


def _of_object(machine: Machine, value: Object) -> Iterator[object]:
    method = machine.special(value, "__iter__")
    if method is None or isinstance(method, Opaque):
        machine.stop(f"iteration over an object of `{value.cls.ref.name}`")
    found = machine.call(method, (), {})
    if isinstance(found, Object):
        machine.stop(f"iteration over an object of `{value.cls.ref.name}`")
    return machine.iterate(found)


def _of_other(machine: Machine, value: object) -> Iterator[object]:
    found = asked(machine, "iter", (value,))
    if isinstance(found, tuple):
        return iter(found)
    if value is None or isinstance(value, int | float):
        machine.throw("TypeError", f"'{type(value).__name__}' object is not iterable")
    raise UnknownElementsError("iteration over a value that is not known", machine.place)

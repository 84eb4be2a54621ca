"""Meaning of names outside the workspace for executed code: functions of concrete values.

The interpreter knows Python and a little of its standard library. An :class:`ExecutionDialect` adds functions, values and
methods of another package. A function takes a :class:`Call` and returns a value; ``call.opaque(reason)`` when it is not known;
``call.throw(exception, message)`` raises in the executed code::

    def _empty(call: Call) -> object:
        return TensorValue(tuple(call.positional), "float32")

    def _of_tensor(call: Call, value: object, name: str) -> object:
        return value.shape if isinstance(value, TensorValue) and name == "shape" else NOT_KNOWN

    TORCH = ExecutionDialect(functions={"torch.empty": _empty}.get, attribute=_of_tensor)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, Protocol, TypeAlias

import msgspec

from opschema_cli.evaluation.execution.values import Closure, Opaque


class Caller(Protocol):
    """The interpreter as seen by a dialect."""

    def opaque(self, reason: str) -> Opaque:
        """Return an unknown value."""

    def throw(self, name: str, message: object = None) -> NoReturn:
        """Raise a built-in exception in the executed code."""

    def stop(self, reason: str) -> NoReturn:
        """End the execution because its result cannot be known."""

    def spend(self, steps: int) -> None:
        """Count steps of work."""

    def call(self, function: object, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Call a value, and return the result."""

    def attribute(self, value: object, name: str) -> object:
        """Return the attribute of a value."""

    def annotations(self, function: Closure) -> list[object]:
        """Return the annotations of a function's parameters, evaluated at its definition; None for those without one."""


class Call(msgspec.Struct, frozen=True, eq=False):
    """A call: the interpreter and the values of the arguments."""

    machine: Caller
    positional: tuple[object, ...] = ()
    keywords: Mapping[str, object] = msgspec.field(default_factory=dict)

    def opaque(self, reason: str) -> Opaque:
        """Return an unknown result."""
        return self.machine.opaque(reason)

    def throw(self, name: str, message: object = None) -> NoReturn:
        """Raise a built-in exception in the executed code."""
        self.machine.throw(name, message)

    def bound(self, *names: str) -> dict[str, object] | None:
        """The arguments by parameter name, without missing ones; None if other arguments are passed."""
        found = dict(zip(names, self.positional, strict=False))
        wrong = len(self.positional) > len(names) or any(name in found or name not in names for name in self.keywords)
        return None if wrong else {**found, **self.keywords}


class _NotKnown:
    """Type of :data:`NOT_KNOWN`."""


NOT_KNOWN = _NotKnown()
"""Answer of a dialect that does not know a value."""

ExternalFunction: TypeAlias = Callable[[Call], object]


def _no_function(name: str) -> ExternalFunction | None:
    return None


def _no_value(name: str) -> object:
    return NOT_KNOWN


def _no_attribute(call: Caller, value: object, name: str) -> object:
    return NOT_KNOWN


def _no_operator(call: Caller, operator: str, operands: Sequence[object]) -> object:
    return NOT_KNOWN


class ExecutionDialect(msgspec.Struct, frozen=True):
    """Functions and values of another package; each may answer :data:`NOT_KNOWN`.

    * ``functions`` takes a full dotted name and returns the function that computes its calls, None if it knows no such name; the
      ``get`` of a dictionary will do. With ``reads_own`` it is asked for functions of the workspace too.
    * ``value`` gives the value of an external name (``torch.float16``).
    * ``attribute`` gives an attribute of a value that is not an object of the workspace; a method is a ``Native``.
    * ``operator`` computes an operator for values that are not Python's: ``+``, ``+=``, ``unary -``, ``==``, ``<``, ``[]``,
      ``in`` (of the container and the item), ``len``, ``bool``, ``iter`` (its result is a tuple).
    * ``instance`` reports whether a value is an instance of a class of that name.
    """

    functions: Callable[[str], ExternalFunction | None] = _no_function
    value: Callable[[str], object] = _no_value
    attribute: Callable[[Caller, object, str], object] = _no_attribute
    operator: Callable[[Caller, str, Sequence[object]], object] = _no_operator
    instance: Callable[[Caller, object, str], object] = _no_attribute
    reads_own: bool = False

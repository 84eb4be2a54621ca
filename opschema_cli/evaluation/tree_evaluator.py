"""The evaluator of a tree: dispatches each question to the module that answers it."""

# ruff: noqa: D102  (the methods are described where they are declared, in `evaluator.py`)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from opschema_cli.evaluation.attributes import attribute_of
from opschema_cli.evaluation.binding import callers
from opschema_cli.evaluation.builtins import NUMBERS
from opschema_cli.evaluation.calls import applied
from opschema_cli.evaluation.constants import folded
from opschema_cli.evaluation.containers import elements
from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.enums import members_of
from opschema_cli.evaluation.evaluator import Evaluator, ExternalCall
from opschema_cli.evaluation.expressions import alternatives
from opschema_cli.evaluation.lookup import found_by_name
from opschema_cli.evaluation.loops import Turns
from opschema_cli.evaluation.origins import origin
from opschema_cli.evaluation.values import (
    Arguments,
    BoundArgument,
    ClassValue,
    EnumMember,
    ExternalName,
    Frame,
    Plain,
    Value,
    Values,
)
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.resolution import ClassKey, ClassRef, Folded, Unresolved

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")


class TreeEvaluator(Evaluator):
    """Evaluates the expressions of one tree. ``dialects`` define the names of other packages; the first that knows a name is
    used.
    """

    def __init__(self, bodies: Bodies, dialects: Sequence[Dialect] = ()) -> None:
        super().__init__(bodies)
        self.dialects = tuple(dialects)
        self._turns = Turns(self)
        self._members: dict[ClassKey, tuple[EnumMember, ...]] = {}

    def anew(self, bodies: Bodies) -> Evaluator:
        """An evaluator of other bodies with the same dialects."""
        return TreeEvaluator(bodies, self.dialects)

    def _alternatives(self, frame: Frame, expr: Expr) -> Iterator[Value]:
        return alternatives(self, frame, expr)

    def _found_by_name(self, frame: Frame, name: str, at: int | None) -> Values:
        return found_by_name(self, frame, name, at)

    def attribute(self, value: Value, name: str) -> Values:
        return _reader(attribute_of, value)(value, self, name)

    def apply(self, callee: Value, arguments: Arguments) -> Iterator[Value]:
        return _reader(applied, callee)(callee, self, arguments)

    def turns(self, frame: Frame, at: int) -> list[Frame]:
        return self._turns.at(frame, at)

    def external(self, name: str) -> Value:
        found = (dialect.names[name] for dialect in self.dialects if name in dialect.names)
        plain = Plain(NUMBERS[name]) if name in NUMBERS else ExternalName(name)
        return next(found, plain)

    def external_call(self, name: str) -> ExternalCall | None:
        return next((read for dialect in self.dialects if (read := dialect.calls(name)) is not None), None)

    def own_call(self, body: Body) -> ExternalCall | None:
        dialects = [dialect for dialect in self.dialects if dialect.reads_own]
        name = self.qualified_name(body) if dialects else ""
        return next((read for dialect in dialects if name and (read := dialect.calls(name)) is not None), None)

    def is_transparent(self, name: str) -> bool:
        return any(name in dialect.transparent for dialect in self.dialects)

    def fold(self, where: Body | ClassRef | PythonFile, expr: Expr) -> Folded | Unresolved:
        return folded(self, self.evaluate(self.frames.at(where), expr))

    def origin(self, body: Body, expr: Expr) -> BoundArgument:
        return origin(self, self.frames.at(body), expr)

    def texts(self, body: Body, expr: Expr) -> frozenset[str] | None:
        found: set[str] = set()
        for frame in self._runs(body, expr):
            text = self.strings(BoundArgument(frame, expr))
            if text.names is None:
                return None
            found |= text.names
        return frozenset(found)

    def classes(self, body: Body, expr: Expr) -> list[ClassRef]:
        values = (value for frame in self._runs(body, expr) for value in self.evaluate(frame, expr))
        return list(dict.fromkeys(value.ref for value in values if isinstance(value, ClassValue)))

    def _runs(self, body: Body, expr: Expr) -> Iterator[Frame]:
        """Yield a frame for each call of a body's function in the tree, and each iteration of the loops around an expression."""
        return (turn for caller in callers(self, body) for turn in self.turns(caller, expr.start))

    def members(self, ref: ClassRef) -> tuple[EnumMember, ...]:
        if ref.key not in self._members:
            self._members[ref.key] = members_of(self, ref)
        return self._members[ref.key]

    def elements(self, frame: Frame, value: Value) -> tuple[BoundArgument, ...] | None:
        return elements(self, frame, value)


def _reader(function: _SingleDispatchCallable[T], value: Value) -> Callable[..., T]:
    """Return the function registered for a value's own type; this is much faster than a dispatch."""
    return function.registry.get(type(value), function)

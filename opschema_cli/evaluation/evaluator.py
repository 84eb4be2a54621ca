"""Evaluation of the expressions of a tree, each to all values that it may have.

Nothing is run. What cannot be told is :class:`Unknown`, and stands beside the alternatives that are known. What
expressions, names, attributes and calls are is written in the rooms beside; here it is kept, and its depth bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from opschema_cli.evaluation.attributes import attribute_of
from opschema_cli.evaluation.binding import callers
from opschema_cli.evaluation.builtins import NUMBERS
from opschema_cli.evaluation.calls import applied
from opschema_cli.evaluation.constants import folded
from opschema_cli.evaluation.containers import elements
from opschema_cli.evaluation.dialect import Dialect, ExternalCall
from opschema_cli.evaluation.enums import members_of
from opschema_cli.evaluation.expressions import alternatives
from opschema_cli.evaluation.frames import Frames
from opschema_cli.evaluation.limits import MAX_HOPS, MAX_STEPS
from opschema_cli.evaluation.lookup import found_by_name
from opschema_cli.evaluation.loops import Turns
from opschema_cli.evaluation.mutations import Changes, changes_in
from opschema_cli.evaluation.origins import origin
from opschema_cli.evaluation.strings import any_of
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    BoundArgument,
    ClassValue,
    EnumMember,
    ExternalName,
    Frame,
    Plain,
    Text,
    Unknown,
    Value,
    Values,
    distinct,
)
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.resolution import ClassKey, ClassRef, Folded, Unresolved
from opschema_cli.source.text import Span

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")


class Evaluator:
    """Evaluates the expressions of one tree, each once in each frame.

    ``dialects`` say what names of other packages mean, the first one that knows a name first. ``written`` is what code
    outside a class was seen to write to its attributes.
    """

    def __init__(self, bodies: Bodies, dialects: Sequence[Dialect] = ()) -> None:
        self.dialects = tuple(dialects)
        self.bodies = bodies
        self.program = bodies.program
        self.frames = Frames(bodies)
        self.turns = Turns(self)
        self.written: dict[tuple[ClassKey, str], list[BoundArgument]] = {}
        self._hops = 0
        self._steps = 0
        self._known: dict[tuple[Frame, int], tuple[Expr, Values]] = {}
        self._members: dict[ClassKey, tuple[EnumMember, ...]] = {}
        self._changes: dict[str, Changes] = {}
        self._named: dict[tuple[Frame, str, int | None], Values] = {}
        self._kept: dict[tuple[str, Span, str], Expr] = {}

    def spend(self, steps: int) -> bool:
        """Count steps of work, and report whether they are within the limit."""
        self._steps += steps
        return self._steps <= MAX_STEPS

    def evaluate(self, frame: Frame, expr: Expr) -> Values:
        """What an expression may be in a frame."""
        key = (frame, id(expr))
        known = self._known.get(key)
        if known is not None:
            return known[1]
        if not self.spend(1) or self._hops >= MAX_HOPS:
            return UNKNOWN
        self._known[key] = expr, UNKNOWN  # what refers to itself; an expression that is kept keeps its identity
        self._hops += 1
        found = distinct(alternatives(self, frame, expr))
        self._known[key] = expr, found
        self._hops -= 1
        return found

    def lookup(self, frame: Frame, name: str, at: int | None = None) -> Values:
        """What a name may be in a frame, at a place of its body or after it has run."""
        key = (frame, name, at)
        if key in self._named:
            return self._named[key]
        if self._hops >= MAX_HOPS:
            return UNKNOWN
        self._named[key] = UNKNOWN
        self._hops += 1
        self._named[key] = found = found_by_name(self, frame, name, at)
        self._hops -= 1
        return found

    def keep(self, frame: Frame, expr: Expr) -> Expr:
        """An expression that no file holds: always the same one, since what is known of expressions is known by their identity."""
        return self._kept.setdefault((frame.body.file.path, expr.span, expr.kind), expr)

    def attribute(self, value: Value, name: str) -> Values:
        """What an attribute of a value may be."""
        return _reader(attribute_of, value)(value, self, name)

    def apply(self, callee: Value, arguments: Arguments) -> Iterator[Value]:
        """What a call may give."""
        return _reader(applied, callee)(callee, self, arguments)

    def external(self, name: str) -> Value:
        """The value of an external name."""
        found = (dialect.names[name] for dialect in self.dialects if name in dialect.names)
        plain = Plain(NUMBERS[name]) if name in NUMBERS else ExternalName(name)
        return next(found, plain)

    def external_call(self, name: str) -> ExternalCall | None:
        """The function of a dialect that reads calls of an external name; None if no dialect knows it."""
        return next((read for dialect in self.dialects if (read := dialect.calls(name)) is not None), None)

    def own_call(self, body: Body) -> ExternalCall | None:
        """The function of a dialect that reads calls of a function of the workspace by its name; None for most."""
        dialects = [dialect for dialect in self.dialects if dialect.reads_own]
        name = self.qualified_name(body) if dialects else ""
        return next((read for dialect in dialects if name and (read := dialect.calls(name)) is not None), None)

    def qualified_name(self, body: Body) -> str:
        """The full name of a function of a module; empty for any other body."""
        if body.function is None or body.parent is None or body.parent.definition is not None:
            return ""
        return f"{self.program.module_name(body.file.path)}.{body.function.name}"

    # Constants

    def fold(self, where: Body | ClassRef | PythonFile, expr: Expr) -> Folded | Unresolved:
        """The constant that an expression of a body, a class or a module is, or why it is none.

        Parameters of functions are not known; use :meth:`evaluate` for a frame that a call entered.
        """
        return folded(self, self.evaluate(self.frames.at(where), expr))

    def origin(self, body: Body, expr: Expr) -> BoundArgument:
        """The expression that an expression of a body stands for: of a name that is assigned once what it is assigned."""
        return origin(self, self.frames.at(body), expr)

    def texts(self, body: Body, expr: Expr) -> frozenset[str] | None:
        """All strings that an expression of a body may be, whichever call of the tree and turn of a loop it is evaluated in;
        None when they are not known.
        """
        found: set[str] = set()
        for frame in self._runs(body, expr):
            text = self.strings(BoundArgument(frame, expr))
            if text.names is None:
                return None
            found |= text.names
        return frozenset(found)

    def classes(self, body: Body, expr: Expr) -> list[ClassRef]:
        """The classes of the workspace that an expression of a body may be, in any call and turn of a loop."""
        values = (value for frame in self._runs(body, expr) for value in self.evaluate(frame, expr))
        return list(dict.fromkeys(value.ref for value in values if isinstance(value, ClassValue)))

    def _runs(self, body: Body, expr: Expr) -> Iterator[Frame]:
        """A frame for each call of a body's function that the tree has, and each turn of the loops around an expression."""
        return (turn for caller in callers(self, body) for turn in self.turns.at(caller, expr.start))

    # Classes and containers

    def members(self, ref: ClassRef) -> tuple[EnumMember, ...]:
        """The members of an enumeration; empty for any other class."""
        if ref.key not in self._members:
            self._members[ref.key] = members_of(self, ref)
        return self._members[ref.key]

    def elements(self, frame: Frame, value: Value) -> tuple[BoundArgument, ...] | None:
        """The elements that iterating over a value gives; None when they are not known."""
        return elements(self, frame, value)

    def changes(self, file: PythonFile) -> Changes:
        """The containers that a file changes."""
        if file.path not in self._changes:
            self._changes[file.path] = changes_in(file)
        return self._changes[file.path]

    # Arguments

    def values(self, argument: BoundArgument | None) -> Values:
        """What an argument may be; empty when there is none."""
        if argument is None:
            return ()
        if argument.expr is None:
            return argument.values or UNKNOWN
        return argument.values or self.evaluate(argument.frame, argument.expr)

    def not_none(self, argument: BoundArgument | None) -> list[Value]:
        """The same, but ``None``, which stands for no argument, left out."""
        return [item for item in self.values(argument) if item != Plain(None)]

    def text(self, argument: BoundArgument | None) -> str | None:
        """The one string that an argument is; None when it is not known, or may be several."""
        found = self.not_none(argument)
        names = found[0].names if len(found) == 1 and isinstance(found[0], Text) else None
        return min(names) if names is not None and len(names) == 1 else None

    def strings(self, argument: BoundArgument | None) -> Text:
        """The strings that an argument may be, as one value."""
        found, place = self.values(argument), argument.place if argument is not None else None
        texts = [item for item in found if isinstance(item, Text)]
        return any_of(texts, place) if texts and len(texts) == len(found) else Text(None, "", place)

    def decorated(self, arguments: Arguments) -> Value:
        """The function that a decorator is applied to."""
        found = self.values(arguments.positional[0]) if arguments.positional else ()
        return found[0] if len(found) == 1 else Unknown("the function is not known")


def _reader(function: _SingleDispatchCallable[T], value: Value) -> Callable[..., T]:
    """What is registered for a value's own type: found in a fraction of the time that a dispatch takes."""
    return function.registry.get(type(value), function)

"""Interface of the evaluator: all that rules, and the modules that evaluate, may ask of it.

Nothing is run. What cannot be known is :class:`Unknown`, beside the alternatives that are known. Limits and memory are kept
here; how each kind of expression, name, attribute and call is evaluated is in the modules beside, and
:class:`~opschema_cli.evaluation.tree_evaluator.TreeEvaluator` puts them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeAlias

from opschema_cli.evaluation.frames import Frames
from opschema_cli.evaluation.limits import MAX_HOPS, MAX_STEPS
from opschema_cli.evaluation.strings import any_of
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    BoundArgument,
    EnumMember,
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


class Evaluator(ABC):
    """Evaluates the expressions of one tree, each once per frame.

    ``written`` is what code outside a class was seen to write to its attributes.
    """

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self.program = bodies.program
        self.frames = Frames(bodies)
        self.written: dict[tuple[ClassKey, str], list[BoundArgument]] = {}
        self._hops = 0
        self._steps = 0
        self._known: dict[tuple[Frame, int], tuple[Expr, Values]] = {}
        self._named: dict[tuple[Frame, str, int | None], Values] = {}
        self._kept: dict[tuple[str, Span, str], Expr] = {}

    def spend(self, steps: int) -> bool:
        """Count steps of work. Return whether they are within the limit."""
        self._steps += steps
        return self._steps <= MAX_STEPS

    def evaluate(self, frame: Frame, expr: Expr) -> Values:
        """Return all possible values of an expression in a frame."""
        key = (frame, id(expr))
        known = self._known.get(key)
        if known is not None:
            return known[1]
        if not self.spend(1) or self._hops >= MAX_HOPS:
            return UNKNOWN
        self._known[key] = expr, UNKNOWN  # what refers to itself; an expression that is kept keeps its identity
        self._hops += 1
        found = distinct(self._alternatives(frame, expr))
        self._known[key] = expr, found
        self._hops -= 1
        return found

    def lookup(self, frame: Frame, name: str, at: int | None = None) -> Values:
        """Return all possible values of a name in a frame, at a place of its body or after it has run."""
        key = (frame, name, at)
        if key in self._named:
            return self._named[key]
        if self._hops >= MAX_HOPS:
            return UNKNOWN
        self._named[key] = UNKNOWN
        self._hops += 1
        self._named[key] = found = self._found_by_name(frame, name, at)
        self._hops -= 1
        return found

    @abstractmethod
    def anew(self, bodies: Bodies) -> Evaluator:
        """Return an evaluator of other bodies with the same names of other packages."""

    @abstractmethod
    def _alternatives(self, frame: Frame, expr: Expr) -> Iterator[Value]:
        """Yield all possible values of an expression that has not been evaluated in the frame."""

    @abstractmethod
    def _found_by_name(self, frame: Frame, name: str, at: int | None) -> Values:
        """Return all possible values of a name that has not been looked up there."""

    def keep(self, frame: Frame, expr: Expr) -> Expr:
        """Return one shared object for an expression that is not in a file, since results are cached by identity."""
        return self._kept.setdefault((frame.body.file.path, expr.span, expr.kind), expr)

    @abstractmethod
    def attribute(self, value: Value, name: str) -> Values:
        """Return all possible values of an attribute."""

    @abstractmethod
    def apply(self, callee: Value, arguments: Arguments) -> Iterator[Value]:
        """Yield all possible results of a call."""

    # Loops and callers

    @abstractmethod
    def turns(self, frame: Frame, at: int) -> list[Frame]:
        """Return a frame for each iteration of the loops around a place; the frame itself if the iterations are not known."""

    # Dialects

    @abstractmethod
    def external(self, name: str) -> Value:
        """Return the value of an external name."""

    @abstractmethod
    def external_call(self, name: str) -> ExternalCall | None:
        """Return the dialect function that reads calls of an external name; None if there is none."""

    @abstractmethod
    def own_call(self, body: Body) -> ExternalCall | None:
        """Return the dialect function that reads calls of a workspace function by its name; None for most functions."""

    @abstractmethod
    def is_transparent(self, name: str) -> bool:
        """Whether a dialect says that a decorator leaves a function unchanged."""

    def qualified_name(self, body: Body) -> str:
        """Return the full name of a module-level function; empty for any other body."""
        if body.function is None or body.parent is None or body.parent.definition is not None:
            return ""
        return f"{self.program.module_name(body.file.path)}.{body.function.name}"

    # Constants

    @abstractmethod
    def fold(self, where: Body | ClassRef | PythonFile, expr: Expr) -> Folded | Unresolved:
        """The constant that an expression of a body, a class or a module is, or why it is none.

        Parameters of functions are not known; use :meth:`evaluate` for a frame that a call entered.
        """

    @abstractmethod
    def origin(self, body: Body, expr: Expr) -> BoundArgument:
        """Return the expression that an expression refers to: for a name that is assigned once, the assigned expression."""

    @abstractmethod
    def texts(self, body: Body, expr: Expr) -> frozenset[str] | None:
        """Return all strings that an expression of a body may be, in any call and loop iteration; None if they are not known."""

    @abstractmethod
    def classes(self, body: Body, expr: Expr) -> list[ClassRef]:
        """Return the workspace classes that an expression of a body may be, in any call and loop iteration."""

    # Classes and containers

    @abstractmethod
    def members(self, ref: ClassRef) -> tuple[EnumMember, ...]:
        """Return the members of an enumeration; empty for any other class."""

    @abstractmethod
    def elements(self, frame: Frame, value: Value) -> tuple[BoundArgument, ...] | None:
        """Return the elements of an iterable value; None if they are not known."""

    # Arguments

    def values(self, argument: BoundArgument | None) -> Values:
        """Return all possible values of an argument; empty if there is none."""
        if argument is None:
            return ()
        if argument.expr is None:
            return argument.values or UNKNOWN
        return argument.values or self.evaluate(argument.frame, argument.expr)

    def not_none(self, argument: BoundArgument | None) -> list[Value]:
        """Return all possible values of an argument except ``None``, which stands for a missing argument."""
        return [item for item in self.values(argument) if item != Plain(None)]

    def text(self, argument: BoundArgument | None) -> str | None:
        """Return the only possible string of an argument; None if it is not known or may be several."""
        found = self.not_none(argument)
        names = found[0].names if len(found) == 1 and isinstance(found[0], Text) else None
        return min(names) if names is not None and len(names) == 1 else None

    def strings(self, argument: BoundArgument | None) -> Text:
        """Return the possible strings of an argument as one value."""
        found, place = self.values(argument), argument.place if argument is not None else None
        texts = [item for item in found if isinstance(item, Text)]
        return any_of(texts, place) if texts and len(texts) == len(found) else Text(None, "", place)

    def decorated(self, arguments: Arguments) -> Value:
        """Return the function that a decorator is applied to."""
        found = self.values(arguments.positional[0]) if arguments.positional else ()
        return found[0] if len(found) == 1 else Unknown("the function is not known")


ExternalCall: TypeAlias = Callable[[Evaluator, Arguments], Iterator[Value]]
"""Function that yields all possible results of a call of an external name."""

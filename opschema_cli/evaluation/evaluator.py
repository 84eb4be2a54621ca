"""What expressions of registering code stand for, each as all that it may be.

Nothing is run. What cannot be told is :class:`Unknown`, and stands beside the alternatives that are known. What
expressions, names, attributes and calls are is written in the rooms beside; here it is kept, and its depth bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from opschema_cli.source.bodies import Bodies
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import ClassKey
from opschema_cli.source.text import Span
from opschema_cli.evaluation.calls import applied
from opschema_cli.evaluation.attributes import attribute_of
from opschema_cli.evaluation.expressions import alternatives
from opschema_cli.evaluation.frames import Frames
from opschema_cli.evaluation.lookup import found_by_name
from opschema_cli.evaluation.strings import any_of
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    Frame,
    Given,
    Plain,
    Text,
    Unknown,
    Value,
    Values,
    distinct,
)

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")

MAX_HOPS = 60
"""Deepest nesting of expressions and names that is followed."""

MAX_STEPS = 400_000
"""Most expressions that are evaluated in one tree, each in each frame."""


class Evaluator:
    """Evaluates the expressions of one tree, each once in each frame.

    ``written`` is what code outside a class was seen to write to its attributes.
    """

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self.program = bodies.program
        self.frames = Frames(bodies)
        self.written: dict[tuple[ClassKey, str], list[Given]] = {}
        self._hops = 0
        self._steps = 0
        self._known: dict[tuple[Frame, int], Values] = {}
        self._named: dict[tuple[Frame, str, int | None], Values] = {}
        self._kept: dict[tuple[str, Span, str], Expr] = {}

    def evaluate(self, frame: Frame, expr: Expr) -> Values:
        """What an expression may be in a frame."""
        key = (frame, id(expr))
        if key in self._known:
            return self._known[key]
        self._steps += 1
        if self._hops >= MAX_HOPS or self._steps > MAX_STEPS:
            return UNKNOWN
        self._known[key] = UNKNOWN  # what refers to itself
        self._hops += 1
        self._known[key] = found = distinct(alternatives(self, frame, expr))
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

    # Arguments

    def values(self, given: Given | None) -> Values:
        """What an argument may be; empty when there is none."""
        if given is None:
            return ()
        if given.expr is None:
            return given.values or UNKNOWN
        return given.values or self.evaluate(given.frame, given.expr)

    def given(self, given: Given | None) -> list[Value]:
        """The same, but ``None``, which stands for no argument, left out."""
        return [item for item in self.values(given) if item != Plain(None)]

    def text(self, given: Given | None) -> str | None:
        """The one string that an argument is; None when it is not known, or may be several."""
        found = self.given(given)
        names = found[0].names if len(found) == 1 and isinstance(found[0], Text) else None
        return min(names) if names is not None and len(names) == 1 else None

    def strings(self, given: Given | None) -> Text:
        """The strings that an argument may be, as one value."""
        found, place = self.values(given), given.place if given is not None else None
        texts = [item for item in found if isinstance(item, Text)]
        return any_of(texts, place) if texts and len(texts) == len(found) else Text(None, "", place)

    def decorated(self, arguments: Arguments) -> Value:
        """The function that a decorator is applied to."""
        found = self.values(arguments.positional[0]) if arguments.positional else ()
        return found[0] if len(found) == 1 else Unknown("the function is not known")


def _reader(function: _SingleDispatchCallable[T], value: Value) -> Callable[..., T]:
    """What is registered for a value's own type: found in a fraction of the time that a dispatch takes."""
    return function.registry.get(type(value), function)

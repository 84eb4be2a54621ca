"""Finds where functions are made ops: the decorator under any name, called at once or later, and functions that wrap it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation import values
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, Frame, Func, Value
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Place
from opschema_cli.suggestions import misspelt_names
from opschema_rules.magi.dialect import PARAMETERS, Decorator, Made, is_registrar


class Written(msgspec.Struct, frozen=True, eq=False):
    """An expression and the body that it is written in."""

    body: Body
    expr: Expr

    @property
    def place(self) -> Place:
        """The place of the argument."""
        return self.body.at(self.expr)


class Arguments(msgspec.Struct, frozen=True, eq=False):
    """Arguments of the decorator, as written, and as ``bound`` if a wrapper computes them. ``hidden`` if unpacking may pass
    more. ``unknown`` are keywords that it does not have, with the probably intended parameter, if there is one; they are read
    under its name.
    """

    given: dict[str, Written | Unresolved] = msgspec.field(default_factory=dict)
    bound: dict[str, BoundArgument] = msgspec.field(default_factory=dict)
    hidden: bool = False
    unknown: dict[str, tuple[BoundArgument, str]] = msgspec.field(default_factory=dict)

    def get(self, name: str) -> Written | Unresolved | None:
        """Return an argument; None if it is not passed."""
        if name not in self.given and self.hidden:
            return Unresolved("the arguments are unpacked")
        return self.given.get(name)


class Registration(msgspec.Struct, frozen=True, eq=False):
    """One function that is made an op: ``call`` is the decorator, or the call that gets the function, in the body ``outer``.

    ``handle`` is the name that the op gets there, empty when it gets none. ``called`` is false for the bare decorator.
    """

    outer: Body
    call: Expr
    function: Body
    arguments: Arguments
    handle: str
    called: bool = True

    @property
    def place(self) -> Place:
        """The place of the decorator or the call."""
        return self.outer.at(self.call)


class Registrations:
    """The ops that a tree registers."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.bodies = evaluator.bodies

    def within(self, body: Body) -> Iterator[Registration]:
        """The registrations that are written directly in a body."""
        for inner in self.bodies.within(body):
            for decorator in inner.function.decorators if inner.function is not None else ():
                found = self._decorated(body, decorator, inner)
                if found is not None:
                    yield found
        for call in body.scope.calls:
            found = self._called(body, call)
            if found is not None:
                yield found

    def _decorated(self, outer: Body, decorator: Expr, function: Body) -> Registration | None:
        name = function.function.name if function.function is not None else ""
        frame = self.evaluator.frames.at(outer)
        made = self._made(frame, decorator, decorator, Func(function, frame))
        if made is not None:
            return Registration(outer, decorator, function, arguments_of(made.decorator), name)
        if self.is_registrar(outer, decorator.text if decorator.kind == "name" else ""):
            return Registration(outer, decorator, function, Arguments(hidden=True), name, called=False)
        return None

    def _called(self, outer: Body, call: Expr) -> Registration | None:
        plain = call.positional()
        if len(plain) != 1 or len(call.items) != 2 or not plain[0].text or plain[0].kind != "name":
            return None
        frame = self.evaluator.frames.at(outer)
        callees = self.evaluator.evaluate(frame, call.items[0])
        if not any(isinstance(item, Decorator | Func) for item in callees):
            return None
        function = self.evaluator.evaluate(frame, plain[0])
        if len(function) != 1 or not isinstance(function[0], Func):
            return None
        made = self._made(frame, call.items[0], call, function[0])
        if made is None:
            return None
        assigns = [item for item in outer.scope.assigns if item.value is not None and item.value.span == call.span]
        handle = assigns[0].target if len(assigns) == 1 else ""
        return Registration(outer, call, function[0].body, arguments_of(made.decorator), handle)

    def _made(self, frame: Frame, callee: Expr, call: Expr, function: Func) -> Made | None:
        """The op that a call of the callee with a function makes; None when it makes none."""
        passed = values.Arguments(frame, call, (BoundArgument(frame, None, (function,)),))
        found: list[Value] = []
        for value in self.evaluator.evaluate(frame, callee):
            if not is_registrar(self.evaluator, value):
                found += self.evaluator.apply(value, passed)
        return next((item for item in found if isinstance(item, Made) and item.function == function), None)

    def makes_decorator(self, body: Body, call: Expr) -> bool:
        """Whether a call passes the decorator its arguments, itself or through others."""
        return any(
            isinstance(item, Decorator) for item in self.evaluator.evaluate(self.evaluator.frames.at(body), call)
        )

    def is_registrar(self, body: Body, dotted: str) -> bool:
        """Whether a name is MagiCompiler's decorator, or one of its meanings in a guarded import is."""
        if not dotted:
            return False
        first, *rest = dotted.split(".")
        found = self.evaluator.lookup(self.evaluator.frames.at(body), first)
        for word in rest:
            found = tuple(item for value in found for item in self.evaluator.attribute(value, word))
        return any(is_registrar(self.evaluator, item) for item in found)


def arguments_of(decorator: Decorator) -> Arguments:
    """The arguments of the decorator."""
    keywords = decorator.arguments.keywords
    bound = decorator.arguments.by_name(PARAMETERS)
    slips = misspelt_names(keywords, [name for name in PARAMETERS if name not in bound])
    unknown = {name: (item, slips.get(name, "")) for name, item in keywords.items() if name not in PARAMETERS}
    bound |= {meant: item for item, meant in unknown.values() if meant}
    given = {name: _written(item) for name, item in bound.items()}
    return Arguments(given, bound, decorator.arguments.open, unknown)


def _written(argument: BoundArgument) -> Written | Unresolved:
    """Return an argument where it is written, through the parameters of wrappers."""
    while argument.expr is not None and argument.expr.kind == "name" and argument.frame.site is not None:
        name = argument.expr.text
        further = argument.frame.bindings.get(name)
        if further is None:
            break
        if further.expr is None:
            return Unresolved(f"`{name}` is not passed")
        argument = further
    if argument.expr is None:
        return Unresolved("it is not written out")
    body = argument.frame.body
    if argument.frame.site is not None:
        inner = {item.name for item in body.params} | {item.target for item in body.scope.assigns}
        if any(part.text.partition(".")[0] in inner for part in argument.expr.walk() if part.kind == "name"):
            return Unresolved("it is computed by a wrapper")
    return Written(body, argument.expr)

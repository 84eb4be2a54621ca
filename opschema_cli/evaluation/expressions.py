"""Evaluates expressions, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.conditions import holds
from opschema_cli.evaluation.containers import comprehension, dictionary, display, subscript
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_ALTERNATIVES
from opschema_cli.evaluation.operations import binary, compare, either, unary
from opschema_cli.evaluation.strings import formatted, joined
from opschema_cli.evaluation.values import (
    Frame,
    Func,
    Plain,
    Text,
    Unknown,
    Value,
    Values,
    distinct,
)
from opschema_cli.source.python import Expr


def alternatives(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield all possible values of an expression."""
    return _READ.get(expr.kind, _unknown)(evaluator, frame, expr)


def _constant(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    value = expr.value
    yield Text(frozenset({value}), place=frame.body.at(expr)) if isinstance(value, str) else Plain(value)


def _name(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    first, *rest = expr.text.split(".")
    found = evaluator.lookup(frame, first, expr.start)
    for name in rest:
        found = distinct(item for value in _with_attribute(found, name) for item in evaluator.attribute(value, name))
    yield from found


def _attribute(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    for value in _with_attribute(evaluator.evaluate(frame, expr.items[0]), expr.text):
        yield from evaluator.attribute(value, expr.text)


def _call(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    for callee in _but_none(evaluator.evaluate(frame, expr.items[0])):
        yield from evaluator.apply(callee, arguments_of(evaluator, frame, expr))


def _but_none(values: Values) -> Values:
    """Return the values without ``None``, whose calls and attributes raise; a failed import may set a name to it."""
    return tuple(value for value in values if value != _NONE) or values


_NONE = Plain(None)


def _with_attribute(values: Values, name: str) -> Values:
    """Return the values that may have an attribute; ``None`` only has those of every object."""
    return values if name.startswith("__") else _but_none(values)


def _lambda(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    body = evaluator.bodies.of_lambda(frame.body, expr)
    yield Func(body, frame) if body is not None else Unknown("it is a lambda inside another expression")


def _unknown(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    yield Unknown()


def _literal(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    yield Unknown("it is not a constant that is kept")


def _conditional(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    test, body, orelse = expr.items
    held = holds(evaluator, frame, test)
    if held is not False:
        yield from evaluator.evaluate(frame, body)
    if held is not True:
        yield from evaluator.evaluate(frame, orelse)


def _formatted(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    options = [_part(evaluator, frame, item) for item in expr.items]
    if prod(map(len, options)) <= MAX_ALTERNATIVES:
        yield from (joined([Text(frozenset({""})), *items]) for items in product(*options))
    else:
        yield Text(None)


def _part(evaluator: Evaluator, frame: Frame, expr: Expr) -> Values:
    """Return the values of a part of an f-string."""
    if expr.kind == "const":
        return (Text(frozenset({str(expr.value)})),)
    specs = expr.items[1].items if len(expr.items) > 1 else ()
    if len(specs) > 1 or any(item.kind != "const" for item in specs):
        return (Text(None),)
    spec = str(specs[0].value) if specs else ""
    return distinct(formatted(item, expr.text, spec) for item in evaluator.evaluate(frame, expr.items[0]))


def _walrus(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    yield from evaluator.evaluate(frame, expr.items[1])


_READ: dict[str, Callable[[Evaluator, Frame, Expr], Iterator[Value]]] = {
    "lambda": _lambda,
    "const": _constant,
    "literal": _literal,
    "name": _name,
    "attribute": _attribute,
    "call": _call,
    **dict.fromkeys(("tuple", "list", "set"), display),
    "dict": dictionary,
    **dict.fromkeys(("listcomp", "setcomp", "generator", "dictcomp"), comprehension),
    "unary": unary,
    "binary": binary,
    "compare": compare,
    "boolop": either,
    "subscript": subscript,
    "ifexp": _conditional,
    "fstring": _formatted,
    "walrus": _walrus,
}

"""Operators: arithmetic, concatenation, comparisons, ``not``, ``and`` and ``or``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import product

from opschema_cli.evaluation.conditions import comparison, truth
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_BASE, MAX_BITS, MAX_EXPONENT, MAX_STRINGS
from opschema_cli.evaluation.strings import joined, repeated
from opschema_cli.evaluation.values import Frame, Items, PackValue, Plain, Text, Unknown, Value
from opschema_cli.source.python import Expr

_BINARY: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow,
}  # fmt: skip
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_UNARY: dict[str, Callable[[float], float]] = {"-": operator.neg, "+": operator.pos}


def unary(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the results of a unary operator."""
    for value in evaluator.evaluate(frame, expr.items[0]):
        held = truth(value) if expr.text == "not" else None
        if held is not None:
            yield Plain(not held)
        elif expr.text in _UNARY and isinstance(value, Plain) and isinstance(value.value, int | float):
            yield Plain(_UNARY[expr.text](value.value))
        else:
            yield Unknown()


def binary(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the results of a binary operator."""
    left, right = (evaluator.evaluate(frame, item) for item in expr.items)
    for first, second in product(left, right):
        yield _binary(expr.text, first, second)


def _binary(word: str, left: Value, right: Value) -> Value:
    if word == "+" and (isinstance(left, Text | PackValue) or isinstance(right, Text | PackValue)):
        return Unknown() if isinstance(left, Plain) or isinstance(right, Plain) else joined([left, right])
    if isinstance(left, Plain) and isinstance(right, Plain):
        return _computed(word, left.value, right.value)
    if word == "+" and isinstance(left, Items) and isinstance(right, Items) and left.kind == right.kind:
        if len(left.elements) + len(right.elements) > MAX_STRINGS:
            return Unknown("it is too large")
        return Items((*left.elements, *right.elements), left.kind, left.open or right.open)
    if word == "*":
        return _repeated(left, right) if isinstance(right, Plain) else _repeated(right, left)
    return Unknown()


def _repeated(value: Value, times: Value) -> Value:
    count = times.value if isinstance(times, Plain) else None
    if not isinstance(count, int):
        return Unknown()
    if isinstance(value, Items) and value.kind != "set" and len(value.elements) * count <= MAX_STRINGS:
        return Items(value.elements * count, value.kind, value.open)
    return repeated(value, count) if isinstance(value, Text) else Unknown()


def _computed(word: str, left: object, right: object) -> Value:
    """Return the result for two numbers; large powers and shifts are not computed."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return Unknown("an operand is not a number")
    if max(_bits(left), _bits(right)) > MAX_BITS:
        return Unknown("a large number")
    if word in ("**", "<<") and (abs(left) > MAX_BASE or abs(right) > MAX_EXPONENT):
        return Unknown("a large power")
    try:
        if word in _INTEGER and isinstance(left, int) and isinstance(right, int):
            return Plain(_INTEGER[word](left, right))
        found = _BINARY[word](left, right)
    except (KeyError, ArithmeticError, ValueError):
        return Unknown(f"`{word}` is not computed")
    return Plain(found) if isinstance(found, int | float) else Unknown(f"`{word}` is not computed")


def _bits(number: float) -> int:
    return number.bit_length() if isinstance(number, int) else 0


def compare(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the result of a comparison, if it is known."""
    held = comparison(evaluator, frame, expr)
    yield Plain(held) if held is not None else Unknown()


def either(evaluator: Evaluator, frame: Frame, expr: Expr) -> Iterator[Value]:
    """Yield the operands that ``or`` and ``and`` may return."""
    for index, item in enumerate(expr.items):
        values = evaluator.evaluate(frame, item)
        last = index == len(expr.items) - 1
        yield from (value for value in values if last or truth(value) in (None, expr.text == "or"))
        if all(truth(value) is (expr.text == "or") for value in values):
            return

"""Tests with numbers whether running a ``__post_init__`` twice gives the same result as running it once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import Folded
from opschema_rules.magi.dataclasses import Dataclass

_SAMPLES = (3.0, 0.37, 250.0)
_TWO: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow,
}  # fmt: skip
_ONE: dict[str, Callable[[float], float]] = {"abs": abs, "float": float, "int": int, "round": round}
_MANY: dict[str, Callable[[list[float]], float]] = {"max": max, "min": min}
_LARGEST = 1e9
"""The largest operands that are computed with."""


def changing(evaluator: Evaluator, found: Dataclass) -> Iterator[tuple[Body, Expr, str]]:
    """Yield the calls ``object.__setattr__(self, "field", value)`` that set another value when they run again."""
    body = evaluator.bodies.function(found.post_init) if found.post_init is not None else None
    names = {item.name for item in found.fields if item.init}
    calls = _setters(body) if body is not None else []
    for call in calls:
        name, value = _set(call)
        if body is None or name not in names or not _surely_runs(body, call):
            continue
        others = {_set(other)[0] for other in calls if other is not call}
        if _is_independent(body, value, name, others) and _changes(_Numbers(evaluator, body), name, value):
            yield body, call, name


def _setters(body: Body) -> list[Expr]:
    """The calls that set an attribute of the instance."""
    found = []
    for call in body.scope.calls:
        given = call.positional()
        plain = call.callee == "object.__setattr__" and len(given) == 3 and len(call.items) == 4
        if plain and given[0].text == body.this:
            found.append(call)
    return found


def _set(call: Expr) -> tuple[str, Expr]:
    """The name and the value that a call sets; the name is empty if it is computed."""
    _, name, value = call.positional()
    return name.value if isinstance(name.value, str) else "", value


def _is_independent(body: Body, value: Expr, name: str, others: set[str]) -> bool:
    """Whether nothing else sets the attribute, or one that its value depends on: the second time, both may cancel out."""
    read = {part.text.removeprefix(f"{body.this}.") for part in value.walk() if part.kind == "name"}
    return others.isdisjoint({"", name, *read})


def _surely_runs(body: Body, call: Expr) -> bool:
    maybe = [*body.scope.guarded, *(loop.body for loop in body.scope.loops)]
    early = any(item.start < call.start for item in body.scope.returns)
    return not early and not any(span.start <= call.start < span.end for span in maybe)


def _changes(numbers: _Numbers, name: str, value: Expr) -> bool:
    for sample in _SAMPLES:
        once = numbers.value(value, name, sample)
        twice = numbers.value(value, name, once) if once is not None else None
        if once is None or twice is None:
            return False
        if not math.isclose(once, twice, rel_tol=1e-9, abs_tol=1e-12):
            return True
    return False


class _Numbers:
    """Computes an expression of a method with a number for one field, and other numbers for the others."""

    def __init__(self, evaluator: Evaluator, body: Body) -> None:
        self.evaluator = evaluator
        self.body = body

    def value(self, expr: Expr, field: str, number: float) -> float | None:
        """The expression's value; None when it is not a plain arithmetic."""
        try:
            return self._value(expr, field, number)
        except (ArithmeticError, ValueError, TypeError):
            return None

    def _value(self, expr: Expr, field: str, number: float) -> float | None:
        parts = [self._value(item, field, number) for item in self._operands(expr)]
        known = [item for item in parts if item is not None]
        if len(known) < len(parts):
            return None
        if expr.kind == "name" and expr.text.startswith(f"{self.body.this}."):
            return number if expr.text == f"{self.body.this}.{field}" else 1.7 if expr.text.count(".") == 1 else None
        if expr.kind == "binary" and expr.text in _TWO and max(map(abs, known)) <= _LARGEST:
            found = _TWO[expr.text](*known)
            return found if isinstance(found, int | float) else None
        if expr.kind == "unary" and expr.text == "-":
            return -known[0]
        if expr.kind == "call":
            return self._call(expr.callee, known)
        return self._folded(expr) if expr.kind in ("const", "name") else None

    def _operands(self, expr: Expr) -> tuple[Expr, ...]:
        if expr.kind == "call":
            return tuple(value for keyword, value in expr.args if not keyword)
        return expr.items if expr.kind in ("binary", "unary") else ()

    def _call(self, callee: str, known: list[float]) -> float | None:
        if callee in _ONE and len(known) == 1:
            return _ONE[callee](known[0])
        return _MANY[callee](known) if callee in _MANY and len(known) > 1 else None

    def _folded(self, expr: Expr) -> float | None:
        found = self.evaluator.fold(self.body, expr)
        value = found.value if isinstance(found, Folded) and not found.symbol else None
        return float(value) if isinstance(value, int | float) else None

"""The values of constant expressions: literals, arithmetic, names bound once, numbers that everybody knows."""

from __future__ import annotations

import math
from collections.abc import Callable

from opschema_cli.source.python import Constant, Expr, PythonFile, Scope
from opschema_cli.source.resolution import HARMLESS_BASES, ClassRef, External, Folded, Unresolved, ValueRef, scopes_of
from opschema_cli.source.resolver import Resolver

MAX_DEPTH = 12
"""Deepest nesting of expressions and names that is followed."""

MAX_PARTS = 2000
"""Most parts of one expression, names followed, that are folded."""


class Folder:
    """Folds one expression."""

    def __init__(self, program: Resolver) -> None:
        self.program = program
        self.parts = MAX_PARTS

    def fold(
        self, file: PythonFile, expr: Expr, scopes: tuple[Scope, ...] = (), depth: int = MAX_DEPTH
    ) -> Folded | Unresolved:
        """The value, or why there is none."""
        self.parts -= 1
        if depth <= 0 or self.parts < 0:
            return Unresolved("the expression is too large")
        if expr.kind == "const":
            return Folded(expr.value)
        if expr.kind == "name":
            return self._name(file, expr.text, scopes, depth)
        if expr.kind in ("tuple", "list"):
            return self._sequence(file, expr, scopes, depth)
        if expr.kind == "call" and expr.callee == "float" and len(expr.items) == 2 and expr.items[1].kind == "const":
            return _float_of(expr.items[1].value)
        if expr.kind in ("unary", "binary"):
            return self._operator(file, expr, scopes, depth)
        return Unresolved("it is computed at run time")

    def _name(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...], depth: int) -> Folded | Unresolved:
        found = self.program.resolve(file, dotted, scopes)
        if isinstance(found, External):
            return Folded(_NUMBERS[found.name]) if found.name in _NUMBERS else Folded(symbol=found.name)
        if isinstance(found, ValueRef) and found.owner is not None and not self._is_plain(found.owner):
            return Unresolved(f"`{dotted}` may be a member of an enumeration")
        if isinstance(found, ValueRef) and found.assign.sure and found.assign.value is not None:
            inner = scopes if found.file is file and not found.owner else scopes_of(found)
            return self.fold(found.file, found.assign.value, inner, depth - 1)
        return found if isinstance(found, Unresolved) else Unresolved(f"`{dotted}` is not a constant")

    def _is_plain(self, ref: ClassRef) -> bool:
        """Whether a class's attributes are what its body assigns: no base or metaclass makes something else of them."""
        order = self.program.mro(ref)
        return not isinstance(order, Unresolved) and all(
            self.program.has_plain_metaclass(item) if isinstance(item, ClassRef) else item.name in HARMLESS_BASES
            for item in order
        )

    def _sequence(self, file: PythonFile, expr: Expr, scopes: tuple[Scope, ...], depth: int) -> Folded | Unresolved:
        values: list[object] = []
        for item in expr.items:
            part = self.fold(file, item, scopes, depth - 1)
            if isinstance(part, Unresolved) or part.symbol:
                return Unresolved("an element is not constant")
            values.append(part.value)
        return Folded(tuple(values) if expr.kind == "tuple" else values)

    def _operator(self, file: PythonFile, expr: Expr, scopes: tuple[Scope, ...], depth: int) -> Folded | Unresolved:
        values: list[object] = []
        for item in expr.items:
            part = self.fold(file, item, scopes, depth - 1)
            if isinstance(part, Unresolved) or part.symbol:
                return Unresolved("an operand is not constant")
            values.append(part.value)
        return _compute(expr.text, values)


def _float_of(value: Constant) -> Folded | Unresolved:
    try:
        return Folded(float(value)) if isinstance(value, str | int | float) else Unresolved("not a number")
    except ValueError:
        return Unresolved("not a number")


def _compute(operator: str, values: list[object]) -> Folded | Unresolved:
    if not all(isinstance(value, int | float) for value in values):
        return Unresolved("an operand is not a number")
    numbers = [value for value in values if isinstance(value, int | float)]
    try:
        if len(numbers) == 1:
            single: dict[str, Callable[[float], float]] = {"-": lambda a: -a, "+": lambda a: +a, "not": lambda a: not a}
            return Folded(single[operator](numbers[0]))
        left, right = numbers
        if operator == "**" and (abs(left) > 1e6 or abs(right) > 64):
            return Unresolved("a large power")
        operations: dict[str, Callable[[float, float], float]] = {
            "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
            "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b,
        }  # fmt: skip
        return Folded(operations[operator](left, right))
    except (KeyError, ArithmeticError):
        return Unresolved(f"`{operator}` is not folded")


_NUMBERS = {
    **{f"{module}.inf": math.inf for module in ("math", "torch", "numpy")},
    **{f"{module}.nan": math.nan for module in ("math", "torch", "numpy")},
    **{f"{module}.pi": math.pi for module in ("math", "torch", "numpy")},
    "math.e": math.e, "math.tau": math.tau, "torch.e": math.e, "numpy.e": math.e,
}  # fmt: skip
"""Numbers of other packages that everybody knows."""

"""Meanings of single conditions of a validator: lengths, comparisons with ``"none"``, and whether they only leave."""

from __future__ import annotations

import re

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Condition, Expr
from opschema_cli.source.text import Span


def inside(span: Span, outer: Span) -> bool:
    """Whether a span lies within another."""
    return outer.start <= span.start and span.end <= outer.end


def is_nothing(expr: Expr) -> bool:
    """Whether an expression is always false, like a default after ``or``."""
    return not expr.items and (expr.kind in ("list", "tuple", "dict") or (expr.kind == "const" and not expr.value))


_FIRST = re.compile(r"(?:\s|#[^\n]*\n)*(return|continue|pass|break)\b")


def skips(body: Body, condition: Condition) -> bool:
    """Whether the code that a condition guards only leaves, with no finding of its own."""
    if not _FIRST.match(body.file.text(condition.body).lstrip(":")):
        return False
    returned = [value for value in body.scope.returns if inside(value.span, condition.body)]
    return all(value.kind in ("name", "const") or (value.kind != "call" and not value.items) for value in returned)


def required(condition: Condition) -> tuple[Expr, ...]:
    """The parts of a condition that each decide alone."""
    whole = condition.expr
    deciding = "and" if condition.kind == "assert" else "or"
    return whole.items if whole.kind == "boolop" and whole.text == deciding else (whole,)


def reference_test(expr: Expr) -> tuple[Expr, bool] | None:
    """The expression compared with ``"none"``, and whether the comparison holds when it is equal."""
    if expr.kind != "compare" or len(expr.items) != 2 or expr.text not in ("==", "!=", "is", "is-not", "in", "not-in"):
        return None
    left, right = expr.items
    if left.value == "none" and not expr.text.endswith("in"):
        left, right = right, left
    if right.value == "none" or any(item.value == "none" for item in right.items):
        return left, expr.text in ("==", "is", "in")
    return None


_EMPTY = {("==", 0), ("<", 1), ("<=", 0)}
_FILLED = {("!=", 0), (">=", 1), (">", 0)}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


COMPUTED = frozenset({"listcomp", "setcomp", "dictcomp", "generator", "ifexp", "walrus", "await", "other"})
"""Kinds of expressions that make or choose a value."""


def emptiness(expr: Expr) -> tuple[Expr, bool] | None:
    """Return the collection whose length an expression tests, and whether the expression is true if it is empty."""
    if expr.kind == "unary" and expr.text == "not":
        inner = emptiness(expr.items[0])
        return (inner[0], not inner[1]) if inner is not None else None
    if expr.kind == "call" and expr.callee == "len" and len(expr.items) == 2:
        return expr.items[1], False
    if expr.kind in ("name", "subscript", "attribute", "call", *COMPUTED):
        return expr, False
    if expr.kind != "compare" or len(expr.items) != 2:
        return None
    left, right, operator = *expr.items, expr.text
    if left.kind == "const":
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    if right.kind in ("list", "tuple", "dict") and not right.items and operator in ("==", "!="):
        return left, operator == "=="
    if left.kind != "call" or left.callee != "len" or len(left.items) != 2 or not isinstance(right.value, int):
        return None
    pair = (operator, right.value)
    return (left.items[1], pair in _EMPTY) if pair in _EMPTY | _FILLED else None

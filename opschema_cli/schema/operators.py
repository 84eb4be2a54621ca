"""Python's operators on the evaluator's values. Each charges for what it builds or reads."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import GeneratorType
from typing import Any, TypeAlias

from opschema_cli.schema.budget import HEAVY, MAX_SET, NUMBERS, SCALARS, SETS, SIZED, Run, kind_of, mismatch
from opschema_cli.schema.values import Tensor

Operator: TypeAlias = Callable[[Run, Any, Any], Any]


def _arithmetic(sign: str, apply: Callable[[Any, Any], Any], *, sets: bool = False) -> Operator:
    """Return an operator whose result is not larger than its operands: on numbers and, with ``sets``, on sets."""

    def compute(run: Run, left: Any, right: Any) -> Any:
        lefts, rights = left.__class__, right.__class__
        if lefts not in NUMBERS or rights not in NUMBERS:
            if not sets or lefts not in SETS or rights not in SETS:
                raise mismatch(sign, left, right)
            run.limit(len(left) + len(right), MAX_SET)
            run.weigh(left)
            run.weigh(right)
        return apply(left, right)

    return compute


def _power(run: Run, left: Any, right: Any) -> Any:
    lefts, rights = left.__class__, right.__class__
    if lefts not in NUMBERS or rights not in NUMBERS:
        raise mismatch("**", left, right)
    if lefts is not float and rights is not float and right > 0:
        run.limit((left.bit_length() - 1) * right, run.budget.bits)
    result = left**right
    if isinstance(result, complex):
        raise ValueError("a negative number has no real root of this degree")
    return result


def _shift_left(run: Run, left: Any, right: Any) -> Any:
    if {left.__class__, right.__class__} - {bool, int}:
        raise mismatch("<<", left, right)
    if left and right > 0:
        run.limit(left.bit_length() + right, run.budget.bits)
    return left << right


BINARY: Mapping[type[ast.operator], Operator] = {
    ast.Add: Run.plus,
    ast.Mult: Run.times,
    ast.Sub: _arithmetic("-", operator.sub, sets=True),
    ast.Div: _arithmetic("/", operator.truediv),
    ast.FloorDiv: _arithmetic("//", operator.floordiv),
    ast.Mod: _arithmetic("%", operator.mod),
    ast.BitAnd: _arithmetic("&", operator.and_, sets=True),
    ast.BitOr: _arithmetic("|", operator.or_, sets=True),
    ast.BitXor: _arithmetic("^", operator.xor, sets=True),
    ast.RShift: _arithmetic(">>", operator.rshift),
    ast.LShift: _shift_left,
    ast.Pow: _power,
}

UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    # Python 3.12 warns of ~True.
    ast.Invert: lambda value: ~(int(value) if value.__class__ is bool else value),
}


def _equal(run: Run, left: Any, right: Any) -> bool:
    if left.__class__ not in SCALARS and right.__class__ not in SCALARS:
        if left.__class__ is Tensor or right.__class__ is Tensor:
            raise TypeError("tensors compare element by element; compare their shapes")
        run.weigh(left)
        run.weigh(right)
    return bool(left == right)


def _ordering(compare: Callable[[Any, Any], Any]) -> Operator:
    def compute(run: Run, left: Any, right: Any) -> Any:
        if left.__class__ in HEAVY:
            run.weigh(left)
            run.weigh(right)
        return compare(left, right)

    return compute


def _identical(run: Run, left: Any, right: Any) -> bool:
    if not any(value is None or value.__class__ in (bool, type) for value in (left, right)):
        raise TypeError("`is` compares places in memory; compare values with `==`")
    return left is right


def _contains(run: Run, item: Any, box: Any) -> bool:
    kind = box.__class__
    if kind is GeneratorType or (kind is range and item.__class__ not in (bool, int)):
        return any(_equal(run, item, candidate) for candidate in run.stream(box))
    if kind not in SIZED:
        raise TypeError(f"{kind_of(box)} cannot be searched")
    run.weigh(item)
    if kind not in SETS and kind is not dict:
        run.weigh(box)
    return item in box


def _not(compare: Operator) -> Operator:
    return lambda run, left, right: not compare(run, left, right)


COMPARE: Mapping[type[ast.cmpop], Operator] = {
    ast.Eq: _equal,
    ast.NotEq: _not(_equal),
    ast.Lt: _ordering(operator.lt),
    ast.LtE: _ordering(operator.le),
    ast.Gt: _ordering(operator.gt),
    ast.GtE: _ordering(operator.ge),
    ast.Is: _identical,
    ast.IsNot: _not(_identical),
    ast.In: _contains,
    ast.NotIn: _not(_contains),
}

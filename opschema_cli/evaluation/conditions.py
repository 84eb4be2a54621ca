"""Decides whether conditions hold, and whether code under them is reached."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.reaching import guards
from opschema_cli.evaluation.values import (
    EnumMember,
    ExternalName,
    Frame,
    Instance,
    Items,
    Plain,
    Table,
    Text,
    Unknown,
    Value,
    Values,
)
from opschema_cli.source.python import LEAVING, Expr, Statement
from opschema_cli.source.text import Span


def runs(evaluator: Evaluator, frame: Frame, span: Span) -> bool:
    """Whether a place of a body may be reached, given what is known of the conditions around it."""
    for item in frame.body.scope.conditions:
        if item.kind == "if":
            if _inside(item.body, span.start) and holds(evaluator, frame, item.expr) is False:
                return False
            if _inside(item.orelse, span.start) and holds(evaluator, frame, item.expr) is True:
                return False
    return True


def reached(evaluator: Evaluator, frame: Frame, span: Span) -> bool:
    """Whether a place of a function may be reached, and is not after an ``if`` that always leaves the function or loop."""
    block: Sequence[Statement] = frame.body.statements
    while block:
        inner: Sequence[Statement] = ()
        for item in block:
            if item.start <= span.start < item.end:
                inner = next((one for one in item.blocks if _holds_place(one, span)), ())
                break
            if item.kind == "if" and _leaving(evaluator, frame, item):
                return False
        block = inner
    return True


def _holds_place(block: Sequence[Statement], span: Span) -> bool:
    return bool(block) and block[0].start <= span.start < block[-1].end


def _leaving(evaluator: Evaluator, frame: Frame, item: Statement) -> bool:
    """Whether the branch of an ``if`` that is known to run never continues after it."""
    body, orelse = item.blocks
    branches = [(body, False), (orelse, True)]
    leaving = [(block, held) for block, held in branches if _leaves(block)]
    return bool(leaving) and any(holds(evaluator, frame, item.exprs[0]) is (not held) for _, held in leaving)


def _leaves(block: Sequence[Statement]) -> bool:
    """Whether a block never continues after its end."""
    last = block[-1] if block else None
    if last is not None and last.kind == "if":
        return all(map(_leaves, last.blocks))
    return last is not None and last.kind in LEAVING


def chosen(evaluator: Evaluator, frame: Frame, span: Span) -> bool:
    """Whether a part of an expression may be evaluated, given what is known of the conditional expressions around it."""
    for item in frame.body.scope.conditional_expressions:
        test, body, orelse = item.items
        if _inside(body.span, span.start) and holds(evaluator, frame, test) is False:
            return False
        if _inside(orelse.span, span.start) and holds(evaluator, frame, test) is True:
            return False
    return True


def doubts(evaluator: Evaluator, frame: Frame, at: int) -> set[Span]:
    """Return the stretches around a place that may not run every time the body does."""
    found = set(guards(frame.body.scope, at))
    for item in frame.body.scope.conditions if found else ():
        for span, held in ((item.body, True), (item.orelse, False)):
            if item.kind == "if" and span in found and holds(evaluator, frame, item.expr) is held:
                found.discard(span)
    return found


def _inside(span: Span | None, at: int) -> bool:
    return span is not None and span.start <= at < span.end


def holds(evaluator: Evaluator, frame: Frame, test: Expr) -> bool | None:
    """Whether a condition holds; None if that is not known."""
    if test.kind == "boolop":
        found = [holds(evaluator, frame, item) for item in test.items]
        decisive = test.text == "or"
        return decisive if decisive in found else None if None in found else not decisive
    if test.kind == "unary" and test.text == "not":
        inner = holds(evaluator, frame, test.items[0])
        return None if inner is None else not inner
    truths = {truth(value) for value in evaluator.evaluate(frame, test)}
    return truths.pop() if len(truths) == 1 else None


def truth(value: Value) -> bool | None:
    """Whether a value is true; None if that is not known."""
    if isinstance(value, Plain):
        return bool(value.value)
    if isinstance(value, Text):
        return None if value.names is None else True if "" not in value.names else None
    if isinstance(value, Items):
        return bool(value.elements) or (None if value.open else False)
    if isinstance(value, Table):
        return True if value.entries else None if value.open else False
    return None if isinstance(value, Unknown | ExternalName | Instance | EnumMember) else True


# Comparisons


def comparison(evaluator: Evaluator, frame: Frame, test: Expr) -> bool | None:
    """Whether a comparison holds, including a chained one; None if that is not known."""
    found = []
    for word, (left, right) in zip(test.text.split(), pairwise(test.items), strict=True):
        if word in ("is", "is-not") and right.kind == "const":
            held = _same(evaluator.evaluate(frame, left), Plain(right.value))
        else:
            held = _compared(word, evaluator.evaluate(frame, left), evaluator.evaluate(frame, right), evaluator, frame)
        found.append(not held if held is not None and word in _NEGATED else held)
    return False if False in found else None if None in found else True


_NEGATED = ("is-not", "!=", "not-in")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _same(values: Values, constant: Plain) -> bool | None:
    found = {value == constant if not isinstance(value, Unknown) else None for value in values}
    return found.pop() if len(found) == 1 else None


def _compared(word: str, left: Values, right: Values, evaluator: Evaluator, frame: Frame) -> bool | None:
    """Whether ``==``, ``is``, ``in``, one of their negations, or an order comparison holds."""
    if word in ("==", "!=", "is", "is-not"):
        return equal(left, right)
    if word in _ORDERS:
        plain = [item.value for values in (left, right) for item in values if isinstance(item, Plain)]
        numbers = [item for item in plain if isinstance(item, int | float)]
        return _ORDERS[word](*numbers) if len(left) == len(right) == 1 and len(numbers) == 2 else None
    return _contains(evaluator, frame, left, right) if word in ("in", "not-in") else None


def _contains(evaluator: Evaluator, frame: Frame, item: Values, holder: Values) -> bool | None:
    parts, texts = _known_texts(item), _known_texts(holder)
    if parts and texts:
        held = {part in text for part in parts for text in texts}
        return held.pop() if len(held) == 1 else None
    elements = (
        evaluator.elements(frame, holder[0]) if len(holder) == 1 and isinstance(holder[0], Items | Table) else None
    )
    if elements is None:
        return None
    found = [equal(item, evaluator.values(element)) for element in elements]
    return True if True in found else None if None in found else False


def _known_texts(values: Values) -> set[str]:
    """Return the texts that values may be; empty if one may be anything else."""
    known = all(isinstance(value, Text) and value.names is not None for value in values)
    return {name for value in values if isinstance(value, Text) for name in value.names or ()} if known else set()


def equal(left: Values, right: Values) -> bool | None:
    """Whether two constants are equal; None if that is not known."""
    if len(left) != 1 or len(right) != 1:
        return None
    first, second = left[0], right[0]
    if isinstance(first, Text) and isinstance(second, Text):
        return _same_text(first, second)
    constants = all(isinstance(item, Plain | Text) for item in (first, second))
    members = isinstance(first, EnumMember) and isinstance(second, EnumMember)
    return first == second if constants or members else None


def _same_text(first: Text, second: Text) -> bool | None:
    if first.names is None or second.names is None:
        return None
    if len(first.names) == len(second.names) == 1:
        return first.names == second.names
    return False if first.names.isdisjoint(second.names) else None

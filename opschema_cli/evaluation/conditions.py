"""Whether code is reached, as far as what conditions test is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opschema_cli.evaluation.reaching import guards
from opschema_cli.evaluation.values import (
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
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span

if TYPE_CHECKING:
    from opschema_cli.evaluation.evaluator import Evaluator


def runs(evaluator: Evaluator, frame: Frame, span: Span) -> bool:
    """Whether a place of a body may be reached, for all that is known of the conditions around it."""
    for item in frame.body.scope.conditions:
        if item.kind == "if":
            if _inside(item.body, span.start) and holds(evaluator, frame, item.expr) is False:
                return False
            if _inside(item.orelse, span.start) and holds(evaluator, frame, item.expr) is True:
                return False
    return True


def doubts(evaluator: Evaluator, frame: Frame, at: int) -> set[Span]:
    """The stretches around a place of which it is not known that they run whenever the body does."""
    found = set(guards(frame.body.scope, at))
    for item in frame.body.scope.conditions if found else ():
        for span, held in ((item.body, True), (item.orelse, False)):
            if item.kind == "if" and span in found and holds(evaluator, frame, item.expr) is held:
                found.discard(span)
    return found


def _inside(span: Span | None, at: int) -> bool:
    return span is not None and span.start <= at < span.end


def holds(evaluator: Evaluator, frame: Frame, test: Expr) -> bool | None:
    """Whether a condition holds; None when that is not known."""
    if test.kind == "unary" and test.text == "not":
        inner = holds(evaluator, frame, test.items[0])
        return None if inner is None else not inner
    if test.kind == "compare":
        return _compares(evaluator, frame, test)
    if test.kind in ("name", "const"):
        found = {truth(value) for value in evaluator.evaluate(frame, test)}
        return found.pop() if len(found) == 1 else None
    return None


def _compares(evaluator: Evaluator, frame: Frame, test: Expr) -> bool | None:
    if test.text in ("is", "is-not") and test.items[1].kind == "const":
        alike = _same(evaluator.evaluate(frame, test.items[0]), Plain(test.items[1].value))
    elif test.text in ("==", "!="):
        left, right = (evaluator.evaluate(frame, item) for item in test.items[:2])
        alike = equal(left, right)
    else:
        return None
    return alike if alike is None or test.text in ("is", "==") else not alike


def _same(values: Values, constant: Plain) -> bool | None:
    found = {value == constant if not isinstance(value, Unknown) else None for value in values}
    return found.pop() if len(found) == 1 else None


def equal(left: Values, right: Values) -> bool | None:
    """Whether two constants are equal; None when that is not known."""
    found = []
    for values in (left, right):
        value = values[0] if len(values) == 1 else None
        if isinstance(value, Plain):
            found.append(value.value)
        elif isinstance(value, Text) and value.names is not None and len(value.names) == 1:
            found.append(min(value.names))
    return found[0] == found[1] if len(found) == 2 else None


def truth(value: Value) -> bool | None:
    """Whether a value is true; None when that is not known."""
    if isinstance(value, Plain):
        return bool(value.value)
    if isinstance(value, Text):
        return None if value.names is None else True if "" not in value.names else None
    if isinstance(value, Items):
        return bool(value.elements)
    if isinstance(value, Table):
        return True if value.entries else None if value.open else False
    return None if isinstance(value, Unknown | ExternalName | Instance) else True

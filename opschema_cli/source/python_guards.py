"""Finds the stretches of a function that run only if a class has, or lacks, an attribute.

A hook such as ``__init_subclass__`` often looks into the class before it writes: ``if "x" in cls.__dict__: return``.
Only the function's own statements are looked at, so what is found holds whatever else the function does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from opschema_cli.source.python import Guard
from opschema_cli.source.text import Span

SpanOf = Callable[[cst.CSTNode], Span]


@dataclass(frozen=True)
class _Fact:
    """That the class in ``variable`` has or lacks an attribute, itself (``own``) or with its bases."""

    variable: str
    attribute: str
    own: bool
    present: bool = True

    def negated(self) -> _Fact:
        return replace(self, present=not self.present)


def find_guards(body: Sequence[cst.CSTNode], end: int, span: SpanOf, written: Iterable[str]) -> list[Guard]:
    """The guarded stretches of a function whose statements are ``body``, which ends at ``end`` and writes ``written``."""
    found: list[Guard] = []
    names: dict[str, _Fact] = {}
    once = Counter(written)
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            _note_names(statement, names, once)
        elif isinstance(statement, cst.If):
            found += _guards_of(statement, end, names, span)
    return found


def _note_names(statement: cst.SimpleStatementLine, names: dict[str, _Fact], written: Counter[str]) -> None:
    """Keep what a name holds that is written nowhere else."""
    for part in statement.body:
        looked_up = _lookup(part.value) if isinstance(part, cst.Assign) and len(part.targets) == 1 else None
        target = part.targets[0].target if isinstance(part, cst.Assign) else None
        if looked_up is not None and isinstance(target, cst.Name) and written[target.value] == 1:
            names[target.value] = looked_up


def _guards_of(node: cst.If, end: int, names: dict[str, _Fact], span: SpanOf) -> Iterator[Guard]:
    for fact in _follow(node.test, names):
        yield _guard(fact, *span(node.body))
    for fact in _suffice(node.test, names):
        if isinstance(node.orelse, cst.Else):
            yield _guard(fact.negated(), *span(node.orelse.body))
        elif node.orelse is None and _leaves(node.body):
            yield _guard(fact.negated(), span(node).end, end)


def _guard(fact: _Fact, start: int, end: int) -> Guard:
    return Guard(fact.variable, fact.attribute, fact.own, fact.present, start, end)


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Return | cst.Raise)


def _suffice(test: cst.BaseExpression, names: dict[str, _Fact]) -> list[_Fact]:
    """Facts each of which makes the test true."""
    if isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.Or):
            return _suffice(test.left, names) + _suffice(test.right, names)
        return []
    return _atom(test, names)


def _follow(test: cst.BaseExpression, names: dict[str, _Fact]) -> list[_Fact]:
    """Facts that hold when the test is true."""
    if isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.And):
            return _follow(test.left, names) + _follow(test.right, names)
        return []
    return _atom(test, names)


def _atom(test: cst.BaseExpression, names: dict[str, _Fact]) -> list[_Fact]:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        if isinstance(test.expression, cst.BooleanOperation):
            return []
        return [fact.negated() for fact in _atom(test.expression, names)]
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        found = _compared(test, names)
    else:
        found = _value(test, names) or _hasattr(test)
    return [found] if found is not None else []


def _compared(test: cst.Comparison, names: dict[str, _Fact]) -> _Fact | None:
    operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
    if isinstance(operator, cst.In | cst.NotIn):
        owner, attribute = _namespace(right), _text(test.left)
        if owner and attribute:
            return _Fact(owner, attribute, True, isinstance(operator, cst.In))
    if isinstance(operator, cst.Is | cst.IsNot) and isinstance(right, cst.Name) and right.value == "None":
        found = _value(test.left, names)
        return replace(found, present=isinstance(operator, cst.IsNot)) if found is not None else None
    return None


def _value(node: cst.BaseExpression, names: dict[str, _Fact]) -> _Fact | None:
    return names.get(node.value) if isinstance(node, cst.Name) else _lookup(node)


def _lookup(node: cst.BaseExpression) -> _Fact | None:
    """``cls.__dict__.get("x")``, ``vars(cls).get("x", None)`` or ``getattr(cls, "x", None)``."""
    if not isinstance(node, cst.Call):
        return None
    args = [item.value for item in node.args]
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get" and 1 <= len(args) <= 2:
        owner, attribute = _namespace(node.func.value), _text(args[0])
        return _Fact(owner, attribute, True) if owner and attribute and all(map(_is_none, args[1:])) else None
    if _is_name(node.func, "getattr") and len(args) == 3 and _is_none(args[2]) and isinstance(args[0], cst.Name):
        attribute = _text(args[1])
        return _Fact(args[0].value, attribute, False) if attribute else None
    return None


def _hasattr(node: cst.BaseExpression) -> _Fact | None:
    if isinstance(node, cst.Call) and _is_name(node.func, "hasattr") and len(node.args) == 2:
        owner, attribute = node.args[0].value, _text(node.args[1].value)
        return _Fact(owner.value, attribute, False) if isinstance(owner, cst.Name) and attribute else None
    return None


def _namespace(node: cst.BaseExpression) -> str:
    """``cls`` of ``cls.__dict__`` or ``vars(cls)``; empty for anything else."""
    if isinstance(node, cst.Attribute) and node.attr.value == "__dict__":
        inner: cst.BaseExpression = node.value
    elif isinstance(node, cst.Call) and _is_name(node.func, "vars") and len(node.args) == 1:
        inner = node.args[0].value
    else:
        return ""
    return inner.value if isinstance(inner, cst.Name) else ""


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _is_none(node: cst.BaseExpression) -> bool:
    return _is_name(node, "None")


def _text(node: cst.BaseExpression) -> str:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    return value if isinstance(value, str) else ""

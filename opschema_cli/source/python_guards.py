"""Finds the stretches of a function that only run if a class has, or lacks, an attribute.

A hook such as ``__init_subclass__`` often looks into the class before it writes: ``if "x" in cls.__dict__: return``.
Only the function's own statements are looked at, so what is found holds whatever else the function does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from opschema_cli.source.python import Assign, Condition, Expr, Guard
from opschema_cli.source.text import Span


class _Fact(msgspec.Struct, frozen=True):
    """A condition that the class in ``variable`` has or lacks an attribute: itself (``own``), or including its bases, or those
    that come before ``base``.
    """

    variable: str
    attribute: str
    own: bool
    present: bool = True
    base: str = ""

    def negated(self) -> _Fact:
        return replace(self, present=not self.present)


def find_guards(
    assigns: Sequence[Assign], conditions: Sequence[Condition], leaving: Mapping[Span, bool], end: int
) -> tuple[Guard, ...]:
    """The guarded stretches of a function that ends at ``end``, from what it assigns and tests.

    ``leaving`` says of each ``if`` among its own statements, by the span of what runs when it holds, whether that leaves
    the function.
    """
    if not leaving:
        return ()
    looked_up = [(item, fact) for item in assigns if item.sure and (fact := _lookup(item.value)) is not None]
    written = Counter(item.target for item in assigns) if looked_up else {}
    known = [(item, fact) for item, fact in looked_up if written[item.target] == 1]
    found: list[Guard] = []
    for condition in conditions:
        if condition.kind == "if" and condition.body in leaving:
            names = {item.target: fact for item, fact in known if item.end < condition.expr.start}
            found += _guards_of(condition, leaving[condition.body], end, names)
    return tuple(found)


def _guards_of(condition: Condition, leaves: bool, end: int, names: Mapping[str, _Fact]) -> Iterator[Guard]:
    for fact in _follow(condition.expr, names):
        yield _guard(fact, condition.body)
    for fact in _suffice(condition.expr, names):
        if condition.orelse is not None:
            yield _guard(fact.negated(), condition.orelse)
        elif leaves:
            yield _guard(fact.negated(), Span(condition.body.end, end))


def _guard(fact: _Fact, stretch: Span) -> Guard:
    return Guard(fact.variable, fact.attribute, fact.own, fact.present, *stretch, fact.base)


def _suffice(test: Expr, names: Mapping[str, _Fact]) -> list[_Fact]:
    """Return facts each of which makes the test true."""
    if test.kind == "boolop":
        return [fact for item in test.items for fact in _suffice(item, names)] if test.text == "or" else []
    return _atom(test, names)


def _follow(test: Expr, names: Mapping[str, _Fact]) -> list[_Fact]:
    """Return facts that hold if the test is true."""
    if test.kind == "boolop":
        return [fact for item in test.items for fact in _follow(item, names)] if test.text == "and" else []
    return _atom(test, names)


def _atom(test: Expr, names: Mapping[str, _Fact]) -> list[_Fact]:
    if test.kind == "unary" and test.text == "not":
        return [fact.negated() for fact in _atom(test.items[0], names)] if test.items[0].kind != "boolop" else []
    found = _compared(test, names) if test.kind == "compare" else _value(test, names) or _hasattr(test)
    return [found] if found is not None else []


def _compared(test: Expr, names: Mapping[str, _Fact]) -> _Fact | None:
    left, right = test.items[0], test.items[1]
    if test.text in ("in", "not-in"):
        owner, attribute = _namespace(right), _text(left)
        if owner and attribute:
            return _Fact(owner, attribute, True, test.text == "in")
    if test.text in ("is", "is-not") and _is_none(right):
        found = _value(left, names)
        return replace(found, present=test.text == "is-not") if found is not None else None
    return _overridden(left, right, test.text)


def _overridden(left: Expr, right: Expr, operator: str) -> _Fact | None:
    """Read ``cls.x is Base.x``: the class has the attribute of its base."""
    parts = [item.text.split(".") if item.kind == "name" else [] for item in (left, right)]
    if operator not in ("is", "is-not") or [len(item) for item in parts] != [2, 2]:
        return None
    (variable, attribute), (base, inherited) = parts
    same = attribute == inherited and variable != base
    return _Fact(variable, attribute, False, operator == "is-not", base) if same else None


def _value(expr: Expr, names: Mapping[str, _Fact]) -> _Fact | None:
    return names.get(expr.text) if expr.kind == "name" else _lookup(expr)


def _lookup(expr: Expr | None) -> _Fact | None:
    """Read ``cls.__dict__.get("x")``, ``vars(cls).get("x", None)`` or ``getattr(cls, "x", None)``."""
    if expr is None or expr.kind != "call" or not (args := _plain_args(expr)):
        return None
    if expr.callee == "getattr" and len(args) == 3 and _is_none(args[2]):
        attribute = _text(args[1])
        return _Fact(args[0].text, attribute, False) if _is_plain_name(args[0]) and attribute else None
    owner, attribute = _gotten_from(expr.items[0]), _text(args[0])
    without_other_default = len(args) == 1 or (len(args) == 2 and _is_none(args[1]))
    return _Fact(owner, attribute, True) if owner and attribute and without_other_default else None


def _hasattr(expr: Expr) -> _Fact | None:
    args = _plain_args(expr)
    if expr.callee == "hasattr" and len(args) == 2 and _is_plain_name(args[0]) and _text(args[1]):
        return _Fact(args[0].text, _text(args[1]), False)
    return None


def _plain_args(expr: Expr | None) -> list[Expr]:
    """Return the arguments of a call that only has positional ones."""
    return list(expr.items[1:]) if expr is not None and expr.kind == "call" and not any(expr.keywords) else []


def _gotten_from(callee: Expr) -> str:
    """Return ``cls`` in ``cls.__dict__.get`` or ``vars(cls).get``."""
    if callee.kind == "attribute" and callee.text == "get":
        return _namespace(callee.items[0])
    owner, _, name = callee.text.rpartition(".")
    return _of_dict(owner) if callee.kind == "name" and name == "get" else ""


def _namespace(expr: Expr) -> str:
    """Return ``cls`` in ``cls.__dict__`` or ``vars(cls)``; empty for anything else."""
    if expr.kind == "name":
        return _of_dict(expr.text)
    args = _plain_args(expr)
    return args[0].text if expr.callee == "vars" and len(args) == 1 and _is_plain_name(args[0]) else ""


def _of_dict(dotted: str) -> str:
    owner, _, name = dotted.rpartition(".")
    return owner if name == "__dict__" and "." not in owner else ""


def _is_plain_name(expr: Expr) -> bool:
    return expr.kind == "name" and "." not in expr.text


def _is_none(expr: Expr) -> bool:
    return expr.kind == "const" and expr.value is None


def _text(expr: Expr) -> str:
    return expr.value if expr.kind == "const" and isinstance(expr.value, str) else ""

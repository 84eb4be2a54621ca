"""Evaluates Starlark expressions from their facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opschema_cli.source.python import Expr
from opschema_cli.source.starlark.values import UNKNOWN, ListValue, NamedRule, Value, list_of, truth

MAX_ITEMS = 2_000
"""Longest list that is known."""

MAX_TEXT = 1_000
"""Longest string that is computed, in characters."""

Scope = Mapping[str, Value]
Caller = Callable[[Expr, Scope], Value]


def evaluate(expr: Expr, scope: Scope, call: Caller) -> Value:
    """The value of an expression; ``call`` evaluates calls."""
    if expr.kind == "const":
        return expr.value
    if expr.kind == "name":
        return _named(expr.text, scope)
    if expr.kind == "call":
        return call(expr, scope)
    compute = _COMPUTED.get(expr.kind)
    return compute(expr, scope, call) if compute is not None else UNKNOWN


def _named(text: str, scope: Scope) -> Value:
    name, *path = text.split(".")
    value = scope.get(name, NamedRule(name))
    for item in path:
        if isinstance(value, dict):
            value = value.get(item, UNKNOWN)
        else:
            value = NamedRule(f"{value.name}.{item}") if isinstance(value, NamedRule) else UNKNOWN
    return value


def _dictionary(expr: Expr, scope: Scope, call: Caller) -> Value:
    found: dict[str, Value] = {}
    for key, value in zip(expr.items[::2], expr.items[1::2], strict=True):
        name = evaluate(key, scope, call) if key.kind != "absent" else UNKNOWN
        if isinstance(name, str):
            found[name] = evaluate(value, scope, call)
    return found


def _listed(expr: Expr, scope: Scope, call: Caller) -> Value:
    return list_of(evaluate(item, scope, call) if item.kind != "starred" else UNKNOWN for item in expr.items)


def _item(expr: Expr, scope: Scope, call: Caller) -> Value:
    owner, *keys = (evaluate(item, scope, call) for item in expr.items)
    known = isinstance(owner, dict) and len(keys) == 1 and isinstance(keys[0], str)
    return owner.get(keys[0], UNKNOWN) if isinstance(owner, dict) and known else UNKNOWN


def _operation(expr: Expr, scope: Scope, call: Caller) -> Value:
    left, right = (evaluate(item, scope, call) for item in expr.items)
    return _binary(expr.text, left, right)


def _binary(operator: str, left: Value, right: Value) -> Value:
    if operator == "+":
        if isinstance(left, str) and isinstance(right, str) and len(left) + len(right) <= MAX_TEXT:
            return left + right
        if isinstance(left, ListValue) and len(left.items) <= MAX_ITEMS:
            return left + right
        if isinstance(right, ListValue):
            return ListValue(list(right.items), open=True)
    if operator == "%" and isinstance(left, str):
        given = [value for value, _ in right.items] if isinstance(right, ListValue) else [right]
        if all(isinstance(item, str) for item in given) and left.count("%s") == left.count("%") == len(given):
            return _filled(left, "%s", [str(item) for item in given])
    return UNKNOWN


def _filled(text: str, hole: str, values: Sequence[str]) -> Value:
    head, *rest = text.split(hole)
    found = head + "".join(value + part for value, part in zip(values, rest, strict=True))
    return found if len(found) <= MAX_TEXT else UNKNOWN


def formatted(text: str, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """``text.format(...)`` with plain holes and strings."""
    for name, value in named.items():
        text = text.replace(f"{{{name}}}", value) if isinstance(value, str) and len(text) <= MAX_TEXT else text
    if text.count("{}") != len(positional) or not all(isinstance(item, str) for item in positional):
        return UNKNOWN
    found = _filled(text, "{}", [str(item) for item in positional])
    return UNKNOWN if isinstance(found, str) and ("{" in found or "}" in found) else found


def _either(expr: Expr, scope: Scope, call: Caller) -> Value:
    test, yes, no = expr.items
    holds = truth(evaluate(test, scope, call))
    if holds is not None:
        return evaluate(yes if holds else no, scope, call)
    one, other = evaluate(yes, scope, call), evaluate(no, scope, call)
    if isinstance(one, ListValue) and isinstance(other, ListValue):
        condition = f"condition at {expr.start}"
        return one.under(frozenset({(condition, True)})) + other.under(frozenset({(condition, False)}))
    return one if one == other else UNKNOWN


def _logic(expr: Expr, scope: Scope, call: Caller) -> Value:
    values = [evaluate(item, scope, call) for item in expr.items]
    if expr.kind == "unary":
        holds = truth(values[0]) if expr.text == "not" else None
        return not holds if holds is not None else UNKNOWN
    if expr.kind == "boolop":
        stops = expr.text == "or"
        for value in values[:-1]:
            holds = truth(value)
            if holds is None or holds == stops:
                return value if holds is not None else UNKNOWN
        return values[-1]
    plain = all(value is None or isinstance(value, (str, bool, int)) for value in values)
    if len(values) == 2 and plain and expr.text in ("==", "!=", "is", "is-not"):
        return (values[0] == values[1]) == (expr.text in ("==", "is"))
    return UNKNOWN


def _comprehension(expr: Expr, scope: Scope, call: Caller) -> Value:
    element, clause = expr.items[:2]
    target, iterable, *conditions = clause.items
    listed = evaluate(iterable, scope, call)
    if (
        not isinstance(listed, ListValue)
        or target.kind != "name"
        or len(expr.items) > 2
        or len(listed.items) > MAX_ITEMS
    ):
        return ListValue([], open=True)
    items = [
        (evaluate(element, {**scope, target.text: value}, call), origin if not conditions else None)
        for value, origin in listed.items
    ]
    return ListValue(items, listed.open)


_COMPUTED: dict[str, Callable[[Expr, Scope, Caller], Value]] = {
    "list": _listed,
    "tuple": _listed,
    "dict": _dictionary,
    "binary": _operation,
    "ifexp": _either,
    "compare": _logic,
    "unary": _logic,
    "boolop": _logic,
    "subscript": _item,
    "listcomp": _comprehension,
}

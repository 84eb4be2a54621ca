"""Evaluates Starlark expressions from facts."""

from __future__ import annotations

import posixpath
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from opschema_cli.source.cmake.conditions import ALWAYS
from opschema_cli.source.python import Expr
from opschema_cli.source.starlark.values import (
    MAX_ITEMS,
    UNKNOWN,
    ListValue,
    NamedRule,
    Value,
    is_extension,
    truth,
)

MAX_TEXT = 1_000
"""Maximum length of a computed string, in characters."""

Scope = Mapping[str, Value]


class Host(Protocol):
    """Evaluates calls, and limits the work."""

    def call(self, expr: Expr, scope: Scope) -> Value:
        """Return the value of a call."""

    def member(self, value: Value, name: str) -> Value:
        """Return an attribute of a value that is neither a dictionary nor from outside the tree."""

    def spend(self, work: int) -> None:
        """Count work: expressions, statements and items of lists.

        Raises:
            TooMuchWorkError: it is beyond the limit.
        """


def evaluate(expr: Expr, scope: Scope, host: Host) -> Value:
    """Return the value of an expression."""
    host.spend(1)
    if expr.kind == "const":
        return expr.value
    if expr.kind == "name":
        return _named(expr.text, scope, host)
    if expr.kind == "call":
        return host.call(expr, scope)
    compute = _COMPUTED.get(expr.kind)
    value = compute(expr, scope, host) if compute is not None else UNKNOWN
    if isinstance(value, ListValue):
        host.spend(len(value.items))
    return value


def _named(text: str, scope: Scope, host: Host) -> Value:
    name, *path = text.split(".")
    value = scope.get(name, NamedRule(name))
    for item in path:
        value = _member(value, item, host)
    return value


def _member(value: Value, name: str, host: Host) -> Value:
    if isinstance(value, dict):
        return value.get(name, UNKNOWN)
    return NamedRule(f"{value.name}.{name}") if isinstance(value, NamedRule) else host.member(value, name)


def _attribute(expr: Expr, scope: Scope, host: Host) -> Value:
    return _member(evaluate(expr.items[0], scope, host), expr.text, host)


def _interpolated(expr: Expr, scope: Scope, host: Host) -> Value:
    """Return the value of an f-string with plain fields."""
    parts = [item.items[0] if item.kind == "field" and len(item.items) == 1 else item for item in expr.items]
    values = [evaluate(item, scope, host) for item in parts]
    found = "".join(item for item in values if isinstance(item, str))
    return found if all(isinstance(item, str) for item in values) and len(found) <= MAX_TEXT else UNKNOWN


def _dictionary(expr: Expr, scope: Scope, host: Host) -> Value:
    found: dict[str, Value] = {}
    for key, value in zip(expr.items[::2], expr.items[1::2], strict=True):
        name = evaluate(key, scope, host) if key.kind != "absent" else UNKNOWN
        if isinstance(name, str):
            found[name] = evaluate(value, scope, host)
    return found


def _listed(expr: Expr, scope: Scope, host: Host) -> Value:
    found = ListValue([])
    for item in expr.items:
        if item.kind == "starred":
            found = found + evaluate(item.items[0], scope, host)
        else:
            found.items.append((evaluate(item, scope, host), ALWAYS))
    return found


def _set(expr: Expr, scope: Scope, host: Host) -> Value:
    found = _listed(expr, scope, host) if expr.kind == "set" else _comprehension(expr, scope, host)
    return found.distinct() if isinstance(found, ListValue) else found


def _item(expr: Expr, scope: Scope, host: Host) -> Value:
    owner, *keys = (evaluate(item, scope, host) for item in expr.items)
    known = isinstance(owner, dict) and len(keys) == 1 and isinstance(keys[0], str)
    return owner.get(keys[0], UNKNOWN) if isinstance(owner, dict) and known else UNKNOWN


def _operation(expr: Expr, scope: Scope, host: Host) -> Value:
    left, right = (evaluate(item, scope, host) for item in expr.items)
    return _binary(expr.text, left, right)


def _binary(operator: str, left: Value, right: Value) -> Value:
    if operator == "+":
        if isinstance(left, str) and isinstance(right, str) and len(left) + len(right) <= MAX_TEXT:
            return left + right
        if isinstance(left, ListValue):
            return left + right
        if isinstance(right, ListValue):
            return ListValue(list(right.items), open=True)
    if operator == "/" and isinstance(left, str) and isinstance(right, str) and len(left) + len(right) <= MAX_TEXT:
        return joined_path([left, right])
    if operator == "%" and isinstance(left, str):
        given = [value for value, _ in right.items] if isinstance(right, ListValue) else [right]
        if all(isinstance(item, str) for item in given) and left.count("%s") == left.count("%") == len(given):
            return _filled(left, "%s", [str(item) for item in given])
    return UNKNOWN


def parent_path(path: str) -> str:
    """Return the folder of a path."""
    path = posixpath.normpath(path)
    if path == "." or path.rpartition("/")[2] == "..":
        return posixpath.normpath(posixpath.join(path, ".."))
    return posixpath.dirname(path) or "."


def joined_path(parts: Sequence[str]) -> str:
    """Join the parts of a path; ``.`` is dropped."""
    return posixpath.join(*([part for part in parts if part != "."] or ["."]))


def _filled(text: str, hole: str, values: Sequence[str]) -> Value:
    head, *rest = text.split(hole)
    found = head + "".join(value + part for value, part in zip(values, rest, strict=True))
    return found if len(found) <= MAX_TEXT else UNKNOWN


def formatted(text: str, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Return ``text.format(...)`` for simple fields and strings."""
    for name, value in named.items():
        text = text.replace(f"{{{name}}}", value) if isinstance(value, str) and len(text) <= MAX_TEXT else text
    if text.count("{}") != len(positional) or not all(isinstance(item, str) for item in positional):
        return UNKNOWN
    found = _filled(text, "{}", [str(item) for item in positional])
    return UNKNOWN if isinstance(found, str) and ("{" in found or "}" in found) else found


def _either(expr: Expr, scope: Scope, host: Host) -> Value:
    test, yes, no = expr.items
    holds = truth(evaluate(test, scope, host))
    if holds is not None:
        return evaluate(yes if holds else no, scope, host)
    one, other = evaluate(yes, scope, host), evaluate(no, scope, host)
    if isinstance(one, ListValue) and isinstance(other, ListValue):
        condition = f"condition at {expr.start}"
        return one.under(frozenset({(condition, True)})) + other.under(frozenset({(condition, False)}))
    same = _is_plain(one) and _is_plain(other) and one == other
    return one if same or (is_extension(one) and is_extension(other)) else UNKNOWN


def _logic(expr: Expr, scope: Scope, host: Host) -> Value:
    values = [evaluate(item, scope, host) for item in expr.items]
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
    if len(values) == 2 and all(map(_is_plain, values)) and expr.text in ("==", "!=", "is", "is-not"):
        return (values[0] == values[1]) == (expr.text in ("==", "is"))
    return UNKNOWN


def _is_plain(value: Value) -> bool:
    """Whether a value contains no others, so that it can be compared directly."""
    return value is None or isinstance(value, (str, bool, int))


def _comprehension(expr: Expr, scope: Scope, host: Host) -> Value:
    element, clause = expr.items[:2]
    target, iterable, *conditions = clause.items
    listed = evaluate(iterable, scope, host)
    if (
        not isinstance(listed, ListValue)
        or target.kind != "name"
        or len(expr.items) > 2
        or len(listed.items) > MAX_ITEMS
    ):
        return ListValue([], open=True)
    items = [
        (
            evaluate(element, ChainMap({target.text: value}, cast("dict[str, Value]", scope)), host),
            origin if not conditions else None,
        )
        for value, origin in listed.items
    ]
    return ListValue(items, listed.open)


_COMPUTED: dict[str, Callable[[Expr, Scope, Host], Value]] = {
    "list": _listed,
    "tuple": _listed,
    "set": _set,
    "setcomp": _set,
    "dict": _dictionary,
    "binary": _operation,
    "ifexp": _either,
    "compare": _logic,
    "unary": _logic,
    "boolop": _logic,
    "subscript": _item,
    "attribute": _attribute,
    "fstring": _interpolated,
    "listcomp": _comprehension,
    "generator": _comprehension,
}

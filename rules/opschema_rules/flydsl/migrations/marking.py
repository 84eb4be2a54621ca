"""Calls of the methods that mark wrapped tensors, and their objects."""

from __future__ import annotations

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.key import is_program
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.reader import MARKS

NAME = "mark_static"
_DYNAMIC = ("mark_layout_dynamic", "mark_shape_dynamic", "mark_stride_dynamic")


def method_of(call: Expr) -> str:
    """Return the last word of the function that a call calls."""
    callee = call.items[0]
    return (
        callee.text.rpartition(".")[2] if callee.kind == "name" else callee.text if callee.kind == "attribute" else ""
    )


def owner(call: Expr) -> Expr | None:
    """Return the object whose method a call calls."""
    callee = call.items[0]
    if callee.kind == "attribute":
        return callee.items[0]
    name = callee.text.rpartition(".")[0] if callee.kind == "name" else ""
    return Expr("name", callee.start, callee.start + len(name), name) if name else None


def is_wrapped(tree: FlyTree, body: Body, expr: Expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is certainly a tensor wrapped by FlyDSL, assuming that the names in ``seen`` are."""
    if expr.kind == "call":
        holder = owner(expr)
        if any(item.body.file is body.file and item.expr.span == expr.span for item in tree.wraps):
            return True
        return method_of(expr) in MARKS and holder is not None and is_wrapped(tree, body, holder, seen)
    if expr.kind != "name" or expr.text in seen:
        return expr.text in seen
    if expr.text == body.this and body.owner is not None:
        return tree.bodies.program.own_member(body.owner, NAME) is not None
    values = _values(tree, body, expr.text)
    return bool(values) and all(is_wrapped(tree, found, value, seen | {expr.text}) for found, value in values)


def _values(tree: FlyTree, body: Body, name: str) -> list[tuple[Body, Expr]]:
    """Return all values that a name is assigned; empty if they are not known."""
    binder = body.binder(name) or tree.bodies.module(body.file)
    values = binder.values(name) if "." not in name else None
    return [(binder, value) for value in values or ()]


def pins(tree: FlyTree, body: Body, expr: Expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a wrapped tensor may have a dynamic layout, so that only the mark puts its sizes into the key."""
    if is_program(tree):
        return False
    if Era.DYNAMIC in tree.contract.eras:
        return True
    if expr.kind == "name":
        values = _values(tree, body, expr.text) if expr.text not in seen else []
        return any(pins(tree, found, value, seen | {expr.text}) for found, value in values)
    holder = owner(expr) if method_of(expr) in MARKS else None
    return method_of(expr) in _DYNAMIC or (holder is not None and pins(tree, body, holder, seen))

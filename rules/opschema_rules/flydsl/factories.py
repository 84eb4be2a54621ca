"""Factories: functions that define launchers, and the calls of them that make the launchers which others call."""

from __future__ import annotations

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.model import Call, FlyTree, Traced


def factory_of(traced: Traced) -> Body | None:
    """The function in which a traced function is defined."""
    around = traced.body.parent
    return around if around is not None and around.function is not None else None


def making_call(tree: FlyTree, call: Call) -> tuple[Body, Expr] | None:
    """The call of a factory that surely made what a call calls, and the body that it stands in."""
    factory, callee = factory_of(call.target), call.expr.items[0]
    body, made = call.body, callee if callee.kind == "call" else None
    if callee.kind == "name" and "." not in callee.text:
        body = body.binder(callee.text) or tree.bodies.module(body.file)
        values = body.values(callee.text) if body.cls is None else None
        made = values[0] if values is not None and len(values) == 1 and values[0].kind == "call" else None
    found = factory is not None and made is not None and tree.bodies.called(body, made.callee) is factory
    return (body, made) if found and made is not None else None

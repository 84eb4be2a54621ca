"""Calls that write an attribute of their own instance as an assignment would: ``setattr`` and ``register_buffer``."""

from __future__ import annotations

from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Assign, Expr


def own_write(bodies: Bodies, body: Body, call: Expr) -> Assign | None:
    """The write of a call to an attribute of the method's instance; its span is that of the literal name.

    None where it writes none, where the name is not a literal, and where a class of the package gives the call a meaning of
    its own.
    """
    written = _set(bodies, body, call) if call.callee == "setattr" else _registered(body, call)
    if written is None or body.owner is None or body.binder(body.this) is not body.method:
        return None
    title, value, hook = written
    if not isinstance(title.value, str) or not title.value.isidentifier() or title.value.startswith("__"):
        return None
    if any(bodies.program.own_member(ref, hook) is not None for ref in bodies.family(body.owner)):
        return None
    return Assign(f"{body.this}.{title.value}", *title.span, value, call.span, sure=False)


def _set(bodies: Bodies, body: Body, call: Expr) -> tuple[Expr, Expr, str] | None:
    if call.keywords != ("", "", "") or not body.this or bodies.external(body, "setattr") != "setattr":
        return None
    _, holder, title, value = call.items
    return (title, value, "__setattr__") if holder.kind == "name" and holder.text == body.this else None


def _registered(body: Body, call: Expr) -> tuple[Expr, Expr, str] | None:
    if not body.this or call.callee != f"{body.this}.register_buffer" or {"*", "**"}.intersection(call.keywords):
        return None
    title, value = call.argument("name", 0), call.argument("tensor", 1)
    return (title, value, "register_buffer") if title is not None and value is not None else None


def is_persistent(call: Expr) -> bool:
    """Whether ``register_buffer`` puts its argument into state dicts, or may."""
    given = call.argument("persistent", 2)
    return given is None or given.value is not False

"""Structures that a function allocates in shared memory, and their fields."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Class, Expr
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.value_classes import plain_name, value_at

_COMPOSITES = frozenset({"struct", "union"})
_COMPUTING = frozenset({"__annotations__", "locals", "vars", "exec", "eval"})
"""Names by which a class body may bind or annotate names that are not written in it."""


class Storage(msgspec.Struct, frozen=True):
    """A class of the tree, and the body that contains it."""

    body: Body
    cls: Class


def storage_of(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> Storage | None:
    """Return the class of an expression, if it is known: by its name, or as the only return value of a function."""
    if hops <= 0:
        return None
    if expr.kind == "call":
        target = tree.bodies.called(body, expr.callee) if expr.callee else None
        plain = target is not None and target.function is not None and not target.function.decorators
        returns = target.scope.returns if target is not None and plain else ()
        return storage_of(tree, target, returns[0], hops - 1) if target is not None and len(returns) == 1 else None
    if expr.kind != "name" or "." in expr.text:
        return None
    around = (item for item in body.outward() if item.cls is None and expr.text in item.scope.named)
    binder = body.binder(expr.text) or next(around, tree.bodies.module(body.file))
    bound = binder.scope.named.get(expr.text, ())
    one = bound[0] if len(bound) == 1 and expr.text not in body.file.rebound else None
    if isinstance(one, Class):
        return Storage(binder, one)
    if not isinstance(one, Assign):
        return None
    value = value_at(body, binder, expr) if binder.function is not None else one.value
    return storage_of(tree, binder, value, hops - 1) if value is not None else None


def is_composite(tree: FlyTree, storage: Storage) -> bool:
    """Whether a class has no base, and its only decorator makes it a structure or a union."""
    marks = [item.items[0] if item.kind == "call" else item for item in storage.cls.decorators]
    names = [plain_name(tree.names.full(storage.body, item.text)) for item in marks if item.kind == "name"]
    return len(marks) == 1 and names[:1] != [] and names[0] in _COMPOSITES and not storage.cls.bases


def fields(cls: Class) -> frozenset[str] | None:
    """Return the names that a class body binds or annotates; None if there may be more."""
    scope = cls.body
    if any(use.name.partition(".")[0] in _COMPUTING for use in scope.uses):
        return None
    return frozenset(scope.named)

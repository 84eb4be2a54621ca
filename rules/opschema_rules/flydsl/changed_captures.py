"""Captured variables that change between two launches: the key is computed once, and ignores lists, dicts and sets."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.closures import Cell
from opschema_cli.evaluation.statements import all_statements, bound_by, is_variable, names_read
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.python import Expr, Loop, Statement
from opschema_rules.flydsl.helpers import is_compiled
from opschema_rules.flydsl.key import has_computed_key
from opschema_rules.flydsl.model import FlyTree, Kind, Traced

_CHANGES = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})


class ChangedCapture(msgspec.Struct, frozen=True):
    """A variable that ``traced`` captures and that ``statement`` of ``body`` changes before it calls ``traced``.

    ``varies`` is the parameter of ``body``, or the variable of the loop, with which it changes.
    """

    traced: Traced
    cell: Cell
    body: Body
    statement: Statement
    varies: str


def changed_captures(tree: FlyTree) -> Iterator[ChangedCapture]:
    """Yield the changed captures of the tree's functions, each variable once."""
    for traced in tree.traced if has_computed_key(tree) else ():
        around = traced.factory
        if traced.kind == "jit" and around is not None and is_compiled(tree, traced):
            calls = [(call.body, call.expr) for call in traced.calls if around in call.body.outward()]
            captured = {item.cell for item in tree.closures.captured(traced.body)} if calls else set[Cell]()
            for cell in sorted(captured, key=lambda item: item.name):
                yield from list(_changed(tree, traced, cell, calls))[:1]


def _changed(tree: FlyTree, traced: Traced, cell: Cell, calls: list[tuple[Body, Expr]]) -> Iterator[ChangedCapture]:
    own = set(tree.bodies.inside(traced.body))
    for body, call in calls:
        if body in own or cell.binder not in body.outward() or body.binder(cell.name) not in (cell.binder, body):
            continue
        for item, varies in _changes(body, cell, call):
            if not _is_passed(traced, body, call, varies):
                yield ChangedCapture(traced, cell, body, item, varies)


def _changes(body: Body, cell: Cell, call: Expr) -> Iterator[tuple[Statement, str]]:
    """Yield the statements that change a variable before a call, each with the name that it varies with between calls."""
    if cell.name not in body.file.text(body.function.outer if body.function is not None else call.span):
        return
    statements = list(all_statements(body.statements))
    shared = {name for item in statements if item.kind == "nonlocal" for name in item.names}
    if cell.binder is not body and cell.name not in shared and body.binds(cell.name):
        return
    loop = _loop_around(body, call) if cell.binder is body else None
    varying = (
        {item.name for item in body.params} if cell.binder is not body else set(loop.targets) if loop else set[str]()
    )
    for item in statements:
        if item.start > call.start or (loop is not None and not loop.body.start <= item.start < loop.body.end):
            continue
        written = _written(item, cell.name, rebinds=cell.name in shared or cell.binder is body)
        name = next((name for name in names_read(written) if name in varying), "")
        if name:
            yield item, name


def _loop_around(body: Body, call: Expr) -> Loop | None:
    loops = [item for item in body.scope.loops if item.body.start <= call.start < item.body.end]
    return loops[-1] if loops else None


def _written(item: Statement, name: str, rebinds: bool) -> list[Expr]:
    """Return the values that a statement assigns to a variable or stores in its container."""
    if item.kind in ("assign", "augassign"):
        targets, value = item.exprs[:-1], item.exprs[-1]
        stored = any(part.kind == "subscript" and part.items[0].text == name for part in targets)
        bound = rebinds and any(is_variable(part) and name in bound_by(part) for part in targets)
        return [value] if stored or bound else []
    if item.kind == "expr" and item.exprs[0].kind == "call":
        owner, _, method = item.exprs[0].callee.rpartition(".")
        return list(item.exprs[0].items[1:]) if owner == name and method in _CHANGES else []
    return []


def _is_passed(traced: Traced, body: Body, call: Expr, name: str) -> bool:
    """Whether a call also passes the varying value to a ``Constexpr``, which is part of the key."""
    params = [item.param for item in traced.call_parameters]
    given = [
        argument_for(call, params, item.name)
        for item in traced.call_parameters
        if item.kind in (Kind.CONSTEXPR, Kind.TYPE)
    ]
    unpacked = any(word in ("*", "**") for word in call.keywords)
    return unpacked or any(item is not None and name in names_read([item]) for item in given)

"""Origins: the expressions that names refer to, through assignments, parameters and imports."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.lookup import bindings_seen
from opschema_cli.evaluation.reaching import bindings, guards, loops
from opschema_cli.evaluation.values import BoundArgument, Frame, ModuleValue
from opschema_cli.source.python import Assign, Binding, Expr, Import, Scope
from opschema_cli.source.text import Span


class Origin(msgspec.Struct, frozen=True, eq=False):
    """An expression that a name may refer to, assigned to it at ``start``.

    ``index`` is the part of it that is unpacked into the name, None for all of it. ``guard`` is the innermost stretch that may
    not run around the assignment, and not around the use as well; None where the assignment surely runs before.
    """

    frame: Frame
    expr: Expr
    start: int
    index: int | None = None
    guard: Span | None = None


def origins(evaluator: Evaluator, frame: Frame, name: str, at: int) -> list[Origin]:
    """Return all expressions that a name may refer to at a place of a frame, in source order; empty if one of them is not known."""
    owner, options = _bindings(evaluator, frame, name, at)
    use = at if owner is frame else None
    found = [_origin(owner, item, use) for item in options if isinstance(item, Assign)]
    known = [item for item in found if item is not None]
    return known[::-1] if len(known) == len(options) else []


def _origin(frame: Frame, item: Assign, at: int | None) -> Origin | None:
    scope = frame.body.scope
    around = {*_stretches(scope, item.start)}.difference(_stretches(scope, at) if at is not None else ())
    guard = max(around, key=lambda span: span.start, default=None)
    if item.value is not None:
        return Origin(frame, item.value, item.start, None, guard)
    whole = next((part for part in scope.unpacks if part.start <= item.start < part.end and not part.starred), None)
    if whole is None or item.target not in whole.targets:
        return None
    return Origin(frame, whole.value, item.start, whole.targets.index(item.target), guard)


def _stretches(scope: Scope, at: int) -> set[Span]:
    return {*guards(scope, at), *loops(scope, at)}


def _bindings(evaluator: Evaluator, frame: Frame, name: str, at: int | None) -> tuple[Frame, list[Binding]]:
    """Return the frame that a name belongs to, and the bindings that a use of it may see; none for a parameter or a deleted
    name.
    """
    for item in frame.outward():
        if name in item.bindings or (item.parent is not None and name in item.body.scope.deleted):
            return item, []
        if item is not frame and item.body.cls is not None:
            continue
        options = bindings_seen(evaluator, item, name, at if item is frame else None)
        if options:
            return item, options
    return frame, []


def origin(evaluator: Evaluator, frame: Frame, expr: Expr) -> BoundArgument:
    """Return the expression that an expression refers to: for a name that is assigned once, the assigned expression; otherwise
    itself.
    """
    found = BoundArgument(frame, expr)
    for _ in range(MAX_CALLS):
        further = _assigned(evaluator, found.frame, found.expr) if found.expr is not None else None
        if further is None:
            break
        found = further
    return found


def _assigned(evaluator: Evaluator, frame: Frame, expr: Expr) -> BoundArgument | None:
    """Return the expression assigned to a name; None if there is not exactly one."""
    if expr.kind != "name":
        return None
    holder, _, name = expr.text.rpartition(".")
    if not holder:
        return _of_name(evaluator, frame, name, expr.start)
    values = evaluator.evaluate(
        frame, evaluator.keep(frame, Expr("name", expr.start, expr.start + len(holder), holder))
    )
    return _of_module(evaluator, values[0], name) if len(values) == 1 and isinstance(values[0], ModuleValue) else None


def _of_name(evaluator: Evaluator, frame: Frame, name: str, at: int | None) -> BoundArgument | None:
    owner, options = _bindings(evaluator, frame, name, at)
    bound = owner.bindings.get(name)
    if bound is not None:
        assigned = name in (item.name for item in owner.body.params) and bindings(owner.body.scope, name)
        return bound if bound.expr is not None and not bound.values and not assigned else None
    return _of_binding(evaluator, owner, options[0]) if len(options) == 1 else None


def _of_binding(evaluator: Evaluator, frame: Frame, item: object) -> BoundArgument | None:
    if isinstance(item, Assign) and item.value is not None:
        return BoundArgument(frame, item.value)
    if isinstance(item, Import) and item.attr:
        module = evaluator.program.absolute_module(frame.body.file, item)
        path = evaluator.program.module_path(module) if module else None
        return _of_module(evaluator, ModuleValue(path), item.attr) if path is not None else None
    return None


def _of_module(evaluator: Evaluator, module: ModuleValue, name: str) -> BoundArgument | None:
    file = evaluator.program.load(module.path)
    return _of_name(evaluator, evaluator.frames.module(file), name, None) if file is not None else None

"""Origins: the expressions that names stand for, followed through assignments, parameters and imports."""

from __future__ import annotations

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.lookup import bindings_seen
from opschema_cli.evaluation.values import BoundArgument, Frame, ModuleValue
from opschema_cli.source.python import Assign, Expr, Import


def origin(evaluator: Evaluator, frame: Frame, expr: Expr) -> BoundArgument:
    """The expression that an expression stands for: of a name that is assigned once what it is assigned, else itself."""
    found = BoundArgument(frame, expr)
    for _ in range(MAX_CALLS):
        further = _assigned(evaluator, found.frame, found.expr) if found.expr is not None else None
        if further is None:
            break
        found = further
    return found


def _assigned(evaluator: Evaluator, frame: Frame, expr: Expr) -> BoundArgument | None:
    """What a name is assigned; None when that is not one expression."""
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
    for item in frame.outward():
        if name in item.bindings:
            bound = item.bindings[name]
            return bound if bound.expr is not None and not bound.values else None
        if item is not frame and item.body.cls is not None:
            continue
        options = bindings_seen(evaluator, item, name, at if item is frame else None)
        if options:
            return _of_binding(evaluator, item, options[0]) if len(options) == 1 else None
    return None


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

"""Names that may stand for something else than their definitions when the code runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.statements import all_statements, bound_by
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef, FunctionRef, ValueRef
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Span, SpanSet
from opschema_rules.flydsl.model import FlyTree


def may_be_another(tree: FlyTree, body: Body, name: Expr) -> bool:
    """Whether a name may stand for something else than its definition when it is used: a lambda, a comprehension or a patch gives
    it, a part of it, or its module another value.
    """
    first = next((part.text.partition(".")[0] for part in name.walk() if part.kind == "name"), "")
    words = {word for part in name.walk() if part.text for word in part.text.split(".")}
    imported = tree.bodies.imported_from(body, name.text) if name.kind == "name" else None
    if imported is not None:
        words.add(imported[0].removesuffix(".py").removesuffix("/__init__").rpartition("/")[2])
    own = tree.words.indexes[body.file.path]
    replaced = not words.isdisjoint([*own.replacing, *own.computing]) or any(map(tree.words.is_replaced, sorted(words)))
    if replaced or first in body.file.rebound or _is_starred_over(tree, body.file, first):
        return True
    return _is_bound_around(body, first, name.start)


@lru_cache(maxsize=256)
def _is_starred_over(tree: FlyTree, file: PythonFile, name: str) -> bool:
    """Whether an `import *` of another module of the tree may bind a name anew that the module imports before."""
    program, imports = tree.bodies.program, file.body.imports
    starts = [item.start for item in imports if item.name == name]
    later = [item for item in imports if starts and item.attr == "*" and item.start > starts[-1]]
    modules = (program.absolute_module(file, item) for item in later)
    paths = (program.module_path(module) for module in modules if module)
    found = (program.module_member(path, name) for path in paths if path is not None)
    return any(isinstance(item, ClassRef | FunctionRef | ValueRef) for item in found)


def _is_bound_around(body: Body, name: str, at: int) -> bool:
    """Whether a lambda, a comprehension or a handler around a place binds a name, or the class in whose body it is used."""
    if body.cls is not None and (body.binds(name) or any(item.name == name for item in body.scope.classes)):
        return True
    if any(at in _handlers_of(around).get(name, ()) for around in body.outward()):
        return True
    return body.in_lambda_of(name, at) or at in _comprehensions_of(body).get(name, ())


@lru_cache(maxsize=256)
def _handlers_of(body: Body) -> dict[str, SpanSet]:
    """The handlers of a function by the names that they bind."""
    found: dict[str, list[Span]] = {}
    for item in all_statements(body.statements):
        if item.kind == "except" and item.text:
            found.setdefault(item.text, []).append(item.span)
    return {name: SpanSet(spans) for name, spans in found.items()}


@lru_cache(maxsize=256)
def _comprehensions_of(body: Body) -> dict[str, SpanSet]:
    """The comprehensions of a body by the names that they bind."""
    found: dict[str, list[Span]] = {}
    for expr in _comprehensions(body):
        for name in (name for item in expr.items if item.kind == "for" for name in bound_by(item.items[0])):
            found.setdefault(name, []).append(expr.span)
    return {name: SpanSet(spans) for name, spans in found.items()}


def _comprehensions(body: Body) -> Iterator[Expr]:
    """The comprehensions of a function; of a module or class those in values, arguments, conditions and loops."""
    scope = body.scope
    roots = [expr for item in all_statements(body.statements) for expr in item.exprs]
    if body.function is None:
        roots += [item.value for item in scope.assigns if item.value is not None]
        roots += [*scope.calls, *(item.expr for item in scope.conditions), *(item.iterable for item in scope.loops)]
    for root in roots:
        yield from (part for part in root.walk() if part.items and part.items[-1].kind == "for")

"""Names that may not refer to their definitions when the code runs."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, bound_by
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span, SpanSet
from opschema_rules.flydsl.body_index import binds_inside
from opschema_rules.flydsl.model import FlyTree


def may_be_another(tree: FlyTree, body: Body, name: Expr) -> bool:
    """Whether a name may not refer to its definition where it is used: a lambda, a comprehension or a patch may rebind it, a part
    of it, or its module.
    """
    first = next((part.text.partition(".")[0] for part in name.walk() if part.kind == "name"), "")
    words = {word for part in name.walk() if part.text for word in part.text.split(".")}
    imported = tree.bodies.imported_from(body, name.text) if name.kind == "name" else None
    if imported is not None:
        words.add(imported[0].removesuffix(".py").removesuffix("/__init__").rpartition("/")[2])
    own = tree.words.indexes[body.file.path]
    replaced = not words.isdisjoint([*own.replacing, *own.computing]) or any(map(tree.words.is_replaced, sorted(words)))
    return replaced or first in body.file.rebound or is_bound_around(body, first, name.start)


def is_bound_around(body: Body, name: str, at: int) -> bool:
    """Whether a lambda or a comprehension around a place, or the class whose body contains it, binds a name."""
    if body.cls is not None and (body.binds(name) or any(item.name == name for item in body.scope.classes)):
        return True
    return binds_inside(body) and at in _binding_within(body).get(name, ())


@cached_on_argument
def _binding_within(body: Body) -> dict[str, SpanSet]:
    """The lambdas and comprehensions of a body, by the names that they bind."""
    found: dict[str, list[Span]] = {}
    for function in body.scope.lambdas:
        for param in function.params:
            found.setdefault(param.name, []).append(function.span)
    for expr in _comprehensions(body):
        for name in (name for item in expr.items if item.kind == "for" for name in bound_by(item.items[0])):
            found.setdefault(name, []).append(expr.span)
    return {name: SpanSet(spans) for name, spans in found.items()}


def _comprehensions(body: Body) -> Iterator[Expr]:
    """Yield the comprehensions of a function; of a module or class, those in values, arguments, conditions and loops."""
    scope = body.scope
    roots = [expr for item in all_statements(body.statements) for expr in item.exprs]
    if body.function is None:
        roots += [item.value for item in scope.assigns if item.value is not None]
        roots += [*scope.calls, *(item.expr for item in scope.conditions), *(item.iterable for item in scope.loops)]
    for root in roots:
        yield from (part for part in root.walk() if part.items and part.items[-1].kind == "for")

"""The dicts of a description with their fields: as written, or as a comprehension or a call computes them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, Table
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr


class Record(msgspec.Struct, frozen=True):
    """A dict: its fields, each with key and value. The values of a computed one are the resulting constants, at the most
    informative place in the description; ``computed`` holds its fields as evaluated.
    """

    expr: Expr
    fields: Mapping[str, tuple[Expr, Expr]]
    computed: Mapping[str, BoundArgument] | None = None


def records_of(evaluator: Evaluator, body: Body, listed: Expr) -> tuple[list[Record], bool]:
    """Return the dicts of a list, and whether these are all."""
    dicts = [item for item in listed.items if item.kind == "dict"] if listed.kind == "list" else []
    written = [Record(item, fields_of(item)) for item in dicts]
    if listed.kind == "list" and len(written) == len(listed.items):
        return written, True
    values = evaluator.evaluate(evaluator.frames.at(body), listed)
    elements = evaluator.elements(evaluator.frames.at(body), values[0]) if len(values) == 1 else None
    if elements is None:
        return written, False
    as_written = {id(item.expr): item for item in written}
    found = [as_written.get(id(item.expr)) or _computed(evaluator, body, listed, item) for item in elements]
    known = [item for item in found if item is not None]
    return known, len(known) == len(found)


def record_of(evaluator: Evaluator, body: Body, expr: Expr) -> Record | None:
    """Return the dict of an expression; None if it is not known."""
    fields = fields_of(expr)
    return Record(expr, fields) if fields else _computed(evaluator, body, expr, bound(evaluator, body, expr))


def bound(evaluator: Evaluator, body: Body, expr: Expr) -> BoundArgument:
    """Return an expression of a body as a bound argument, without any of the body's calls."""
    return BoundArgument(evaluator.frames.at(body), expr)


def _computed(evaluator: Evaluator, body: Body, around: Expr, element: BoundArgument) -> Record | None:
    """Return a dict that the expression ``around`` computes, or an element of it."""
    expr = element.expr if element.expr is not None and element.frame.body.file is body.file else around
    written = fields_of(expr)
    values = evaluator.values(element)
    table = values[0] if len(values) == 1 and isinstance(values[0], Table) and not values[0].open else None
    if table is None:
        return None
    computed = {key: value for key, value in table.entries if isinstance(key, str)}
    pairs = {name: written.get(name, (expr, expr)) for name in computed}
    folded = {name: (key, _folded(evaluator, value, computed[name])) for name, (key, value) in pairs.items()}
    return Record(expr, folded, computed)


def _folded(evaluator: Evaluator, expr: Expr, field: BoundArgument) -> Expr:
    """Return the constant value of a field, at the place of an expression."""
    values = evaluator.values(field)
    word = constant(values[0]) if len(values) == 1 else None
    return Expr("const", expr.start, expr.end, value=word[0]) if word else Expr("other", expr.start, expr.end)


def fields_of(expr: Expr) -> dict[str, tuple[Expr, Expr]]:
    """Return the fields of a dict with constant keys; empty for anything else, and for one that unpacks another."""
    if expr.kind != "dict" or not all(isinstance(key.value, str) for key in expr.items[::2]):
        return {}
    pairs = list(zip(expr.items[::2], expr.items[1::2], strict=True))
    return {key.value: (key, value) for key, value in pairs if isinstance(key.value, str)}

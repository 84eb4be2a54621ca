"""A validator's or a test's demand that every op declares an input, which makes ops that have none declare a carrier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opschema_cli.source.program import Program
from opschema_cli.source.python import Condition, Expr, PythonFile
from opschema_rules.tileops.bodies import MAX_HOPS, Bodies, Body
from opschema_rules.tileops.conditions import emptiness, required, skips


@dataclass(frozen=True, eq=False)
class Demand:
    """A check or an assertion that an op declares at least one input."""

    body: Body
    test: Expr


def demands(program: Program, file: PythonFile) -> list[Demand]:
    """Every check in a file that an op declares an input, params or not, by place."""
    if "inputs" not in file.source.text:
        return []
    bodies = Bodies(program, [file.path]).of(file)
    conditions = ((body, condition) for body in bodies for condition in body.scope.conditions)
    return [Demand(body, test) for body, condition in conditions for test in _demanding(body, condition)]


def _demanding(body: Body, condition: Condition) -> Iterator[Expr]:
    """The parts of a condition that fail, or report, an op for having no inputs."""
    reporting = condition.kind == "if"
    for test in required(condition):
        measured = emptiness(test)
        if measured is None or measured[1] is not reporting or not _is_inputs(body, measured[0], MAX_HOPS):
            continue
        if not reporting or not skips(body, condition):
            yield test


def _is_inputs(body: Body, expr: Expr, hops: int) -> bool:
    """Whether an expression is what any entry, of a loop or a parameter, declares as ``inputs``."""
    if expr.kind == "name" and "." not in expr.text and hops > 0:
        binder = body.binder(expr.text)
        values = binder.values(expr.text) if binder is not None else None
        return bool(values) and all(_is_inputs(body, value, hops - 1) for value in values or ())
    reads = expr.kind == "subscript" or (expr.kind == "call" and expr.callee.endswith(".get"))
    if not reads or len(expr.items) < 2 or expr.items[1].value != "inputs":
        return False
    return _is_any_entry(body, expr, hops)


def _is_any_entry(body: Body, expr: Expr, hops: int) -> bool:
    while expr.kind in ("subscript", "call", "attribute") and expr.items:
        expr = expr.items[0]
    name = expr.text.partition(".")[0] if expr.kind == "name" else ""
    binder = body.binder(name) if name and hops > 0 else None
    if binder is None:
        return False
    if any(item.name == name for item in binder.params) or any(name in loop.targets for loop in binder.scope.loops):
        return True
    return any(_is_any_entry(binder, value, hops - 1) for value in binder.values(name) or ())

"""A validator's or a test's demand that every op declares an input, which makes ops that have none declare a carrier."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import Condition, Expr, PythonFile
from opschema_rules.tileops.conditions import emptiness, inside, is_nothing, required, skips


class Demand(msgspec.Struct, frozen=True, eq=False):
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
    if (reporting and not _reports(body, condition)) or _is_of_some(body, condition):
        return
    for test in required(condition):
        measured = emptiness(test)
        if measured is not None and measured[1] is reporting and _is_inputs(body, measured[0], MAX_CALLS):
            yield test


_REPORTS = re.compile(
    r"""
    ^:?\s*(?:raise|yield)\b
    | \b\w*(?:err|fail|problem|issue|violat|finding|missing|invalid|bad|warn|report|diag)\w*(?:\s*\.\s*\w+)*\s*(?:\(|\+=)
    | (?:\.\s*(?:append|extend|add)\s*\(|\breturn\b)\s*[\[(]?\s*[rf]{0,2}["'][^"'\n]*\s
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""Pattern of code that reports: a raise, a call or list named for it, a message that is put on a list or returned."""


def _reports(body: Body, condition: Condition) -> bool:
    """Whether the code that a condition guards reports something; it may just leave, count, or substitute a value."""
    return _REPORTS.search(body.file.text(condition.body)) is not None and not skips(body, condition)


def _is_of_some(body: Body, condition: Condition) -> bool:
    """Whether a condition is only reached for ops identified by their params."""
    around = (item for item in body.scope.conditions if item.kind == "if" and inside(condition.expr.span, item.body))
    return any("params" in body.file.text(item.expr) for item in around)


def _is_inputs(body: Body, expr: Expr, hops: int) -> bool:
    """Whether an expression is the ``inputs`` of any entry, in a loop or a parameter."""
    if expr.kind == "name" and "." not in expr.text and hops > 0:
        binder = body.binder(expr.text)
        values = binder.values(expr.text) if binder is not None else None
        return bool(values) and all(_is_inputs(body, value, hops - 1) for value in values or ())
    expr = filled(expr)
    if not _reads(expr) or len(expr.items) < 2 or expr.items[1].value != "inputs":
        return False
    return _is_any_entry(body, expr, hops)


def filled(expr: Expr) -> Expr:
    """An expression without its empty default: ``x`` of ``x or {}``."""
    if expr.kind == "boolop" and expr.text == "or" and all(map(is_nothing, expr.items[1:])):
        return expr.items[0]
    return expr


def _reads(expr: Expr) -> bool:
    """Whether an expression reads an item of a mapping; ``get`` may have an empty default."""
    if expr.kind != "call":
        return expr.kind == "subscript"
    return expr.items[0].text.rpartition(".")[2] == "get" and all(map(is_nothing, expr.items[2:]))


def _is_any_entry(body: Body, expr: Expr, hops: int) -> bool:
    while expr.kind in ("subscript", "call", "attribute", "boolop") and expr.items:
        inner = filled(expr) if expr.kind == "boolop" else expr.items[0]
        if inner is expr:
            return False
        expr = inner
    name = expr.text.partition(".")[0] if expr.kind == "name" else ""
    binder = body.binder(name) if name and hops > 0 else None
    if binder is None:
        return False
    if any(item.name == name for item in binder.params) or any(name in loop.targets for loop in binder.scope.loops):
        return True
    return any(_is_any_entry(binder, value, hops - 1) for value in binder.values(name) or ())

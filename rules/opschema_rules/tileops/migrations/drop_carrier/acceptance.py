"""Checks whether a validator already accepts an op that has params but no inputs, and rejects one with neither."""

from __future__ import annotations

import re

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import Condition, Expr, PythonFile
from opschema_rules.tileops.conditions import emptiness, inside


def accepts_params(program: Program, file: PythonFile) -> bool:
    """Whether some check of a file reports an op only where both its inputs and its params are empty."""
    if "inputs" not in file.source.text or "params" not in file.source.text:
        return False
    bodies = Bodies(program, [file.path]).of(file)
    return any(_asks_for_either(body, condition) for body in bodies for condition in body.scope.conditions)


def _asks_for_either(body: Body, condition: Condition) -> bool:
    whole, reporting = condition.expr, condition.kind == "if"
    if whole.kind != "boolop" or whole.text != ("and" if reporting else "or"):
        return False
    sections = [_sections(body, item, MAX_CALLS) for item in whole.items if _says(item, empty=reporting)]
    return {"inputs"} in sections and {"params"} in sections


def _says(expr: Expr, *, empty: bool) -> bool:
    """Whether an expression holds where something is empty, or where it is not."""
    if expr.kind == "call" and expr.callee == "isinstance":
        return False
    measured = emptiness(expr)
    if measured is not None:
        return measured[1] is empty
    counted = expr.kind == "compare" and len(expr.items) == 2 and expr.items[0].kind == "name"
    pair = (expr.text, expr.items[1].value) if counted else None
    return pair in ({("<", 1), ("==", 0)} if empty else {(">=", 1), (">", 0)})


_SECTION = re.compile(r"""["'](inputs|params)["']""")


def _sections(body: Body, expr: Expr, hops: int) -> set[str]:
    """The sections of a signature that an expression, or a value of a name in it, reads."""
    found = set(_SECTION.findall(body.file.text(expr)))
    names = {use.name for use in body.scope.uses if inside(use.span, expr.span)} if hops > 0 else set()
    for name in names:
        binder = body.binder(name) if "." not in name else None
        for value in (binder.values(name) if binder is not None else None) or ():
            found |= _sections(binder or body, value, hops - 1)
    return found

"""Finds plain functions that make a Python decision on a device value, which a kernel passes them while it is traced."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.statements import all_statements, is_variable
from opschema_cli.source.bodies import Body, params_for
from opschema_cli.source.program import Folded
from opschema_cli.source.python import LEAVING, Expr, Param, Statement
from opschema_rules.flydsl.candidates import words
from opschema_rules.flydsl.deciding import deciding
from opschema_rules.flydsl.device_values import ORDER, DeviceValues, is_plain_number, names_bound
from opschema_rules.flydsl.model import FlyTree


class HelperBranch(msgspec.Struct, frozen=True, eq=False):
    """An expression by which a helper decides in the statement ``what`` (``if``), and the call in a traced function that passes it
    a device value.
    """

    helper: Body
    expr: Expr
    what: str
    parameter: str
    caller: Body
    argument: Expr


def helper_branches(values: DeviceValues) -> Iterator[HelperBranch]:
    """Yield the branches of the helpers that a traced function calls."""
    for body in values.bodies:
        for call in body.scope.calls:
            arguments = list(_device_arguments(values, body, call)) if _may_decide(values, body, call) else []
            helper = values.tree.bodies.called(body, call.callee) if arguments else None
            if helper is None or not _is_plain(values, helper):
                continue
            for name, argument in arguments:
                found = _decisions(values.tree, helper, name)
                yield from (HelperBranch(helper, expr, what, name, body, argument) for expr, what in found)


def _is_plain(values: DeviceValues, helper: Body) -> bool:
    """Whether a function is neither decorated nor traced."""
    return helper.function is not None and not helper.function.decorators and values.tree.around(helper) is None


def _may_decide(values: DeviceValues, body: Body, call: Expr) -> bool:
    """Whether a function may decide by an argument of a call."""
    named = call.callee and values.tree.words.is_deciding(call.callee.rpartition(".")[2])
    return bool(named) and not values.candidates.isdisjoint(words(body, call))


def _device_arguments(values: DeviceValues, body: Body, call: Expr) -> Iterator[tuple[str, Expr]]:
    """Yield the device values that a call passes to parameters by which the function may decide, with the names of these
    parameters.
    """
    params, asked = _asked(values, body, call.callee)
    for param, argument in zip(params_for(call, params), call.items[1:], strict=True) if asked else ():
        wanted = param is not None and param.name in asked and not values.candidates.isdisjoint(words(body, argument))
        if param is not None and wanted and values.of(body, argument) == "number":
            yield param.name, argument


def _asked(values: DeviceValues, body: Body, callee: str) -> tuple[tuple[Param, ...], set[str]]:
    """Return the parameters of a function, and the names of those by which it may decide."""
    names = values.tree.names
    if callee.partition(".")[0] != body.this:
        found = names.parameters(body, callee)
        return (found[1], names.deciding(body, callee)) if found is not None else ((), set())
    method = values.tree.bodies.called(body, callee)
    if method is None or method.function is None:
        return (), set()
    params = method.params[1:] if method.this else method.params
    return params, deciding(method.file.text(method.function.outer), method.params)


def _decisions(tree: FlyTree, helper: Body, name: str) -> Iterator[tuple[Expr, str]]:
    """Yield the expressions by which every call of a function decides on a parameter, before any statement that may leave it."""
    for item in helper.function.statements if helper.function is not None else ():
        found = _decision(tree, helper, item, name)
        if found is not None:
            yield found
        inside = list(all_statements([item]))
        if (
            found is not None
            or any(inner.kind in LEAVING or inner.kind == "try" for inner in inside)
            or name in names_bound(inside)
        ):
            return


def _decision(tree: FlyTree, helper: Body, item: Statement, name: str) -> tuple[Expr, str] | None:
    """Return the expression by which a statement decides."""
    if item.kind in ("if", "while", "assert"):
        return (item.exprs[0], item.kind) if _decides(tree, helper, item.exprs[0], name) else None
    if item.kind == "for" and item.exprs[1].callee == "range":
        bounds = [part for part in item.exprs[1].positional() if _is_computed(part, name)]
        return (bounds[0], "range") if bounds else None
    returned = item.exprs[0] if item.kind == "return" and item.exprs else None
    if returned is not None and returned.kind == "ifexp" and _decides(tree, helper, returned.items[0], name):
        return returned.items[0], "if"
    return None


def _decides(tree: FlyTree, helper: Body, expr: Expr, name: str) -> bool:
    """Whether Python tests the truth of a value that is computed from a parameter."""
    while expr.kind == "boolop" or (expr.kind == "unary" and expr.text == "not"):
        expr = expr.items[0]
    if expr.kind == "compare" and expr.text in ORDER:
        others = [item for item in expr.items if not _is_computed(item, name)]
        return len(others) < 2 and all(is_plain_number(item) or _is_constant(tree, helper, item) for item in others)
    return _is_computed(expr, name)


def _is_constant(tree: FlyTree, helper: Body, expr: Expr) -> bool:
    """Whether an expression is the name of a number in the helper's module."""
    if not is_variable(expr) or helper.binder(expr.text) is not None:
        return False
    found = tree.evaluator.fold(helper, expr)
    return isinstance(found, Folded) and not found.symbol and type(found.value) in (int, float)


def _is_computed(expr: Expr, name: str) -> bool:
    """Whether an expression is a parameter, or arithmetic with it and numbers."""
    parts = list(expr.walk())
    names = {item.text for item in parts if item.kind == "name"}
    operators = {item.text for item in parts if item.kind == "binary"}
    known = all(item.kind in ("binary", "name") or is_plain_number(item) for item in parts)
    return known and names == {name} and operators.isdisjoint({"@", "**"})

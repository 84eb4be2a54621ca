"""Plain functions that decide, in Python, by a late value which a kernel hands them while it is traced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from opschema_cli.source.bodies import Body, params_for
from opschema_cli.source.function_tree import FunctionTree, function_tree
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.run_time import RunTime, dotted, node_at
from opschema_rules.flydsl.suspicion import words

_ORDER = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
_WORD = re.compile(r"[A-Za-z_]\w*")
_DECIDING = re.compile(r"\b(?:if|while|assert|range)\b([^\n]*)")
_LEAVES = ast.Return | ast.Raise | ast.Break | ast.Continue


class Handed(msgspec.Struct, frozen=True, eq=False):
    """What a helper decides by, as ``what`` (``if``), and the call in a traced function that hands it a late value."""

    tree: FunctionTree
    node: ast.expr
    what: str
    parameter: str
    caller: Body
    argument: Expr

    @property
    def helper(self) -> Body:
        """The helper."""
        return self.tree.body


def handed(run_time: RunTime) -> Iterator[Handed]:
    """The decisions of the helpers that a traced function calls."""
    tree = run_time.tree
    for body in run_time.bodies:
        for call in body.scope.calls:
            if not call.callee or run_time.suspects.isdisjoint(words(body, call)):
                continue
            helper = tree.bodies.called(body, call.callee)
            if (
                helper is None
                or helper.function is None
                or helper.function.decorators
                or tree.around(helper) is not None
            ):
                continue
            asked = _asked(helper)
            syntax = function_tree(helper) if asked else None
            if syntax is not None:
                for name, argument in _late_arguments(run_time, body, call, helper, asked):
                    found = _decisions(syntax, name)
                    yield from (Handed(syntax, node, what, name, body, argument) for node, what in found)


def _asked(helper: Body) -> set[str]:
    """The parameters that stand behind a word by which Python may decide."""
    text = helper.file.text(helper.function.outer) if helper.function is not None else ""
    said = {word for match in _DECIDING.finditer(text) for word in _WORD.findall(match[1])}
    return {item.name for item in helper.params if item.name in said}


def _late_arguments(
    run_time: RunTime, body: Body, call: Expr, helper: Body, asked: set[str]
) -> Iterator[tuple[str, Expr]]:
    for param, argument in zip(params_for(call, helper.params), call.items[1:], strict=True):
        wanted = param is not None and param.name in asked and not run_time.suspects.isdisjoint(words(body, argument))
        node = node_at(body, argument.span) if wanted else None
        if param is not None and node is not None and run_time.late(body, node) == "number":
            yield param.name, argument


def _decisions(tree: FunctionTree, name: str) -> Iterator[tuple[ast.expr, str]]:
    """What every call of a function decides by a parameter, before any statement that may leave it."""
    if any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load) for node in tree.nodes
    ):
        return
    for statement in tree.node.body:
        match statement:
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
                if _decides(test, name):
                    yield test, type(statement).__name__.lower()
                    return
            case ast.For(iter=ast.Call(func=func, args=args)) if dotted(func) == "range":
                found = [item for item in args if _is_computed(item, name)]
                if found:
                    yield found[0], "range"
                    return
            case ast.Return(value=ast.IfExp(test=test)) if _decides(test, name):
                yield test, "if"
        if any(isinstance(node, _LEAVES | ast.Try) for node in ast.walk(statement)):
            return


def _decides(node: ast.expr, name: str) -> bool:
    """Whether Python asks if a value is true that is computed of a parameter."""
    while isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        node = node.values[0] if isinstance(node, ast.BoolOp) else node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDER):
        sides = [node.left, node.comparators[0]]
        others = [item for item in sides if not _is_computed(item, name)]
        return len(others) < 2 and all(_is_number(item) for item in others)
    return _is_computed(node, name)


def _is_computed(node: ast.expr, name: str) -> bool:
    """Whether an expression is a parameter, or arithmetic with it and numbers."""
    parts = [item for item in ast.walk(node) if isinstance(item, ast.expr)]
    operators = [item.op for item in parts if isinstance(item, ast.BinOp)]
    known = all(isinstance(item, ast.BinOp | ast.Name) or _is_number(item) for item in parts)
    names = {item.id for item in parts if isinstance(item, ast.Name)}
    return known and names == {name} and not any(isinstance(item, ast.MatMult | ast.Pow) for item in operators)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)

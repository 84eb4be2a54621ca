"""Uses of optional inputs in an expression, and tests of whether they are passed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from opschema_cli.schema.expression import Expression, Reference


def unguarded(expression: Expression, optional: Iterable[str], *, guards: bool = True) -> Iterator[Reference]:
    """Yield the uses of ``optional`` names that are not presence tests; with ``guards``, uses after an ``x is None`` operand of
    the top-level ``or`` are left out.
    """
    node = expression.tree
    operands = node.values if guards and isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else [node]
    guarded: set[str] = set()
    for operand in operands:
        part = expression.part(operand)
        tests = {part.start_of(name) for inner in part.nodes if (name := tested(inner)) is not None}
        for use in part.names():
            if use.name in optional and use.name not in guarded and use.span.start not in tests:
                yield use
        guard = tested(operand, ast.Is)
        guarded.update([guard.id] if guard is not None else [])


def tested(node: ast.AST, *signs: type[ast.cmpop]) -> ast.Name | None:
    """The name in ``x is None`` or ``x is not None``."""
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or len(node.ops) != 1:
        return None
    other = node.comparators[0]
    is_none = isinstance(other, ast.Constant) and other.value is None
    return node.left if is_none and isinstance(node.ops[0], signs or (ast.Is, ast.IsNot)) else None

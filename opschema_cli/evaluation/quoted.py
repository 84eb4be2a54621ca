"""Expressions in strings: annotations that are quoted."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

from opschema_cli.evaluation.limits import MAX_ANNOTATION
from opschema_cli.source.python import Expr


def quoted(text: str, at: Expr) -> Expr | None:
    """The type that a string states, all of it placed at the string; None when it is none."""
    found = _parsed(text)
    return _placed(found, at) if found is not None else None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Expr | None:
    if len(text) > MAX_ANNOTATION:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _expr(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _placed(expr: Expr, at: Expr) -> Expr:
    return Expr(
        expr.kind,
        at.start,
        at.end,
        expr.text,
        expr.value,
        tuple([_placed(item, at) for item in expr.items]),
        expr.keywords,
    )


def _expr(node: ast.expr) -> Expr:
    """The parts of which types are made."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return Expr("const", 0, 0, "", value)
        case ast.Constant():
            return Expr("literal", 0, 0, ast.unparse(node))
        case ast.Name():
            return Expr("name", 0, 0, node.id)
        case ast.Attribute():
            owner = _expr(node.value)
            return Expr("name", 0, 0, f"{owner.text}.{node.attr}") if owner.kind == "name" else Expr("other", 0, 0)
        case ast.BinOp(op=ast.BitOr()):
            return Expr("binary", 0, 0, "|", None, (_expr(node.left), _expr(node.right)))
        case ast.Subscript():
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
            return Expr("subscript", 0, 0, "", None, (_expr(node.value), *map(_expr, inner)))
        case ast.Tuple() | ast.List():
            return Expr(
                "tuple" if isinstance(node, ast.Tuple) else "list", 0, 0, "", None, tuple(map(_expr, node.elts))
            )
    return Expr("other", 0, 0)

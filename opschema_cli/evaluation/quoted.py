"""Expressions in strings: quoted annotations."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

from opschema_cli.evaluation.limits import MAX_ANNOTATION
from opschema_cli.source.ast_facts import NotTakenError, expression_of
from opschema_cli.source.python import Expr


def quoted(text: str, at: Expr) -> Expr | None:
    """Return the type in a string, with all parts placed at the string; None if it is not a type."""
    found = _parsed(text)
    return _placed(found, at) if found is not None else None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Expr | None:
    text = text.strip()
    if len(text) > MAX_ANNOTATION:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return expression_of(text, ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, NotTakenError):
        return None


def _placed(expr: Expr, at: Expr) -> Expr:
    items = tuple([_placed(item, at) for item in expr.items])
    return Expr(expr.kind, at.start, at.end, expr.text, expr.value, items, expr.keywords)

"""Syntax trees of annotations, which may be strings."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

from opschema_cli.evaluation.limits import MAX_ANNOTATION


@lru_cache(maxsize=2048)
def parse(text: str) -> ast.expr | None:
    """An expression's syntax tree, places counted from one character before it; None when it does not parse, or is long.

    The tree is the same for all that have the text: most annotations of a library are one of ten.
    """
    if len(text) > MAX_ANNOTATION:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def dotted(node: ast.expr) -> str:
    """The dotted name that a node is; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""

"""Rewrites the condition of an assertion."""

from __future__ import annotations

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span


def replace_assertion(rewrite: Rewrite, statement: cst.Assert, condition: str, message: str | None = None) -> None:
    """Write another condition and message; comments after the statement are kept.

    Args:
        rewrite: the round.
        statement: the assertion.
        condition: code; several lines need parentheses of their own.
        message: code; None keeps what is there.
    """
    tree = rewrite.tree
    rewrite.replace(_outer(tree, statement.test), condition)
    if message is None:
        return
    if statement.msg is not None:
        rewrite.replace(_outer(tree, statement.msg), message)
    else:
        end = _outer(tree, statement.test).end
        rewrite.replace(Span(end, end), f", {message}")


def _outer(tree: PythonTree, node: cst.BaseExpression) -> Span:
    """With its parentheses; ``assert(x)`` keeps them, for the word before."""
    start, end = tree.outer(node)
    return Span(start, end) if tree.text[start - 1].isspace() else tree.span(node)

"""Expressions of a tree by their spans in the facts."""

from __future__ import annotations

from contextlib import suppress

import libcst as cst

from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span

_EXPRESSIONS: tuple[type[cst.BaseExpression], ...] = (
    cst.BooleanOperation, cst.Comparison, cst.UnaryOperation, cst.Call, cst.Name, cst.Attribute, cst.Subscript, cst.NamedExpr,
    cst.IfExp, cst.ListComp, cst.GeneratorExp, cst.List, cst.Tuple,
)  # fmt: skip


def expression_at(tree: PythonTree, span: Span) -> cst.BaseExpression:
    """The expression that is written at a span of the facts.

    Raises:
        LookupError: there is none.
    """
    for kind in _EXPRESSIONS:
        with suppress(LookupError):
            return tree.find(span, kind)
    raise LookupError(f"no expression is written at {span.start}-{span.end}")

"""One form for rules that mean the same: order of operands, parentheses, number of equal comparisons."""

from __future__ import annotations

import ast
import copy
from functools import lru_cache

from opschema_cli.schema.expression import ExpressionSyntaxError, parse_expression

_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMMUTATIVE = (ast.Add, ast.Mult)


@lru_cache(maxsize=8192)
def canonical_rules(text: str) -> tuple[str, ...]:
    """The conditions that a rule joins with ``and``, each in its one form; a text that does not parse, without its spaces."""
    try:
        tree = copy.deepcopy(parse_expression(text).tree)
    except ExpressionSyntaxError:
        return (" ".join(text.split()),)
    found = _Canonical().visit(tree)
    parts = found.values if isinstance(found, ast.BoolOp) and isinstance(found.op, ast.And) else [found]
    return tuple(dict.fromkeys(map(ast.unparse, parts)))


class _Canonical(ast.NodeTransformer):
    """Rewrites a tree from its leaves: ``b == a`` as ``a == b``, ``a > b`` as ``b < a``, ``not a is b`` as ``a is not b``, and the
    operands of ``and``, ``or``, ``+`` and ``*`` in order.
    """

    def visit_List(self, node: ast.List) -> ast.expr:
        """A list of sizes as a tuple."""
        self.generic_visit(node)
        return ast.Tuple(node.elts, ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A sum or product, its operands in order."""
        self.generic_visit(node)
        if isinstance(node.op, _COMMUTATIVE) and ast.unparse(node.right) < ast.unparse(node.left):
            node.left, node.right = node.right, node.left
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """A negated comparison as the opposite one."""
        self.generic_visit(node)
        inner = node.operand
        if isinstance(node.op, ast.Not) and isinstance(inner, ast.Compare) and len(inner.ops) == 1:
            opposite = _NEGATED.get(type(inner.ops[0]))
            if opposite is not None:
                return _ordered(ast.Compare(inner.left, [opposite()], inner.comparators))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A chain as its links."""
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        links = [
            _ordered(ast.Compare(left, [sign], [right]))
            for sign, left, right in zip(node.ops, sides, sides[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else _joined(ast.And(), links)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """The operands in order, each once."""
        self.generic_visit(node)
        return _joined(node.op, node.values)


def _joined(operator: ast.boolop, values: list[ast.expr]) -> ast.expr:
    found: dict[str, ast.expr] = {}
    for value in values:
        is_same = isinstance(value, ast.BoolOp) and isinstance(value.op, type(operator))
        for item in value.values if is_same and isinstance(value, ast.BoolOp) else [value]:
            found.setdefault(ast.unparse(item), item)
    operands = [found[text] for text in sorted(found)]
    return operands[0] if len(operands) == 1 else ast.BoolOp(operator, operands)


def _ordered(node: ast.Compare) -> ast.expr:
    """A comparison with ``<`` or ``<=`` for their mirrors, and the sides of ``==`` and ``!=`` in order."""
    sign, right = node.ops[0], node.comparators[0]
    mirrored = _MIRRORED.get(type(sign))
    if mirrored is not None:
        return ast.Compare(right, [mirrored()], [node.left])
    if isinstance(sign, ast.Eq | ast.NotEq) and ast.unparse(right) < ast.unparse(node.left):
        return ast.Compare(right, [sign], [node.left])
    return node

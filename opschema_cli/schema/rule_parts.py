"""Forms of the parts of a rule: equations, names of sizes, tests for presence, links of a chained comparison."""

from __future__ import annotations

import ast
import copy
from functools import lru_cache

from opschema_cli.schema.evaluate import SHAPE_FUNCTIONS
from opschema_cli.schema.expression import Expression

_OF_TENSORS = frozenset({"dim_range_validity", "dim_uniqueness", "reduced_axes"})
_LAZY = (ast.BoolOp, ast.IfExp, ast.GeneratorExp, ast.ListComp, ast.SetComp)


def is_equation(node: ast.Compare) -> bool:
    """Whether a comparison is ``left == right``."""
    return len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)


@lru_cache(maxsize=4096)
def named_sizes(part: Expression) -> tuple[str, tuple[str, ...]]:
    """The tensor and the names in ``x.shape == (B, S)``; no names in other expressions."""
    node = part.tree
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Attribute):
        return "", ()
    base, right = node.left.value, node.comparators[0]
    if not isinstance(base, ast.Name) or node.left.attr != "shape" or not isinstance(right, ast.Tuple):
        return "", ()
    names = tuple(item.id for item in right.elts if isinstance(item, ast.Name))
    return base.id, names if len(names) == len(right.elts) and SHAPE_FUNCTIONS.keys().isdisjoint(names) else ()


def is_presence_test(node: ast.expr) -> bool:
    """Whether an expression is ``x is None`` or ``x is not None``."""
    return (
        isinstance(node, ast.Compare)
        and [type(sign) for sign in node.ops] in ([ast.Is], [ast.IsNot])
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )


@lru_cache(maxsize=256)
def links(node: ast.Compare) -> tuple[ast.Compare, ...]:
    """``a < b < c`` as ``a < b`` and ``b < c``; the same nodes each time."""
    operands = [node.left, *node.comparators]
    links = []
    for sign, left, right in zip(node.ops, operands, operands[1:], strict=False):
        link = ast.copy_location(ast.Compare(left, [sign], [right]), left)
        link.end_lineno, link.end_col_offset = right.end_lineno, right.end_col_offset
        links.append(link)
    return tuple(links)


@lru_cache(maxsize=4096)
def uses(part: Expression) -> tuple[tuple[str, bool], ...]:
    """The free names of ``part``, each with whether it is its shape that is read."""
    bases = {
        part.start_of(node.value)
        for node in part.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return tuple(dict.fromkeys((use.name, use.span.start in bases) for use in part.names()))


@lru_cache(maxsize=4096)
def is_strict(part: Expression) -> bool:
    """Whether ``part`` reads all of its names in every evaluation."""
    return not any(
        isinstance(node, _LAZY) or (isinstance(node, ast.Compare) and len(node.ops) > 1) for node in part.nodes
    )


@lru_cache(maxsize=1024)
def with_sizes(rule: Expression, names: frozenset[str]) -> Expression:
    """Rename the sizes in ``rule`` that share a name with something else, which their position tells apart."""
    if names.isdisjoint(use.name for use in rule.names()):
        return rule
    tree: ast.expr = _SizeNames(names).visit(copy.deepcopy(rule.tree))
    return rule.rewritten(tree)


class _SizeNames(ast.NodeTransformer):
    """Renames sizes: all names except those with a ``.shape``, in a test for None, or passed to a function of tensors."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return node if isinstance(node.value, ast.Name) else self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return node if is_presence_test(node) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        takes_tensor = isinstance(node.func, ast.Name) and node.func.id in _OF_TENSORS
        first = 1 if takes_tensor else 0
        node.args[first:] = [self.visit(argument) for argument in node.args[first:]]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.names:
            node.id = f"{node.id} (size)"
        return node

"""Uses of a tuple that a list does not support."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from opschema_cli.migrate.codemods.definitions import function_node
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.codemods.scopes import dotted, local_uses
from opschema_cli.migrate.migration import Note
from opschema_cli.source.bodies import Body
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place
from opschema_rules.magi.model import MagiTree

_ASKING = frozenset({"isinstance", "hash", "type", "set", "frozenset"})


def tuple_uses(tree: MagiTree, rewrite: Rewrite, body: Body, path: tuple[str, ...]) -> Iterator[Note]:
    """Yield notes on uses of a function's parameter, or of a field of it, that a list does not support or that give another
    result.
    """
    if body.function is None or body.function.param(path[0]) is None:
        return
    nodes = rewrite.tree
    for use in local_uses(rewrite, function_node(nodes, body), path[0]):
        node = _value(nodes, use, path)
        what = _of_tuples(nodes, node) if node is not None else None
        if what is not None:
            place = Place(body.file.path, nodes.span(what))
            yield Note(place, f"`{'.'.join(path)}` is a list now: `{nodes.code(what)}` means something else")


def _value(tree: PythonTree, use: cst.Name, path: tuple[str, ...]) -> cst.BaseExpression | None:
    node: cst.BaseExpression = use
    for name in path[1:]:
        above = tree.parent(node)
        if not isinstance(above, cst.Attribute) or above.attr.value != name:
            return None
        node = above
    return node


def _of_tuples(tree: PythonTree, node: cst.BaseExpression) -> cst.CSTNode | None:
    """Return the expression around a value, or around a slice of it, that treats it as a tuple."""
    above = tree.parent(node)
    if isinstance(above, cst.Subscript) and above.value is node and isinstance(above.slice[0].slice, cst.Slice):
        return _of_tuples(tree, above)
    if isinstance(above, cst.BinaryOperation):
        other = above.right if above.left is node else above.left
        modulo = isinstance(above.operator, cst.Modulo) and above.right is node
        return above if modulo or (isinstance(above.operator, cst.Add) and not isinstance(other, cst.List)) else None
    if isinstance(above, cst.ComparisonTarget | cst.Comparison):
        whole = above if isinstance(above, cst.Comparison) else tree.parent(above)
        return whole if isinstance(whole, cst.Comparison) and not _asks_none(whole) else None
    if isinstance(above, cst.Index):
        return tree.enclosing(above, cst.Subscript)
    if isinstance(above, cst.Arg):
        call = tree.parent(above)
        asks = isinstance(call, cst.Call) and dotted(call.func) in _ASKING and not above.star
        return call if asks else None
    is_key = isinstance(above, cst.DictElement) and above.key is node
    in_set = isinstance(above, cst.Element) and isinstance(tree.parent(above), cst.Set)
    return above if is_key or in_set else None


def _asks_none(node: cst.Comparison) -> bool:
    sides = [node.left, *(item.comparator for item in node.comparisons)]
    return any(isinstance(side, cst.Name) and side.value == "None" for side in sides)

"""Removes a method from a class, with the private attributes that only this method writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.folding import fold_expression
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import all_parameters, is_write, local_uses
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span

_EMPTY = frozenset({"frozenset()", "set()", "tuple()", "list()", "dict()", "()", "[]", "{}", "None", "False"})
_MAKERS = ("frozenset", "set", "tuple", "list", "dict")


def drop_method(
    rewrite: Rewrite, owner: cst.ClassDef, method: cst.FunctionDef, elsewhere: Callable[[str], bool]
) -> list[str]:
    """Remove a method, and each private attribute that only it writes apart from an empty initial value.

    Conditions on such an attribute are folded, and unreachable code is removed. An attribute that is still used, or is named
    ``elsewhere``, is kept.

    What asks whether such an attribute is empty is decided, and what can then not be reached is taken out. An attribute
    that is still used, or is named ``elsewhere``, stays.

    Returns:
        The qualified names of the other methods that were folded.
    """
    names = [name for name in dict.fromkeys(_written(rewrite.tree, method)) if not elsewhere(name)]
    rewrite.remove(method)
    folded: list[str] = []
    for name in names:
        try:
            with rewrite.all_or_nothing():
                folded += _drop_empty(rewrite, owner, name)
        except Refused:
            continue
    return folded


def _written(tree: PythonTree, method: cst.FunctionDef) -> Iterator[str]:
    """Yield the private attributes of the instance that a method assigns or calls a method of."""
    params = all_parameters(method.params)
    for node in tree.walk(method.body):
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.attr.value.startswith("_"):
            above = tree.parent(node)
            is_self = bool(params) and node.value.value == params[0].name.value
            if is_self and isinstance(above, cst.AssignTarget | cst.Attribute):
                yield node.attr.value


def _drop_empty(rewrite: Rewrite, owner: cst.ClassDef, name: str) -> list[str]:
    tree = rewrite.tree
    uses = [node for node in tree.attributes(name) if not rewrite.is_gone(node)]
    if not all(_initial(tree, node) for node in uses if _writes(tree, node)):
        return []
    folded = []
    for node in uses:
        if not rewrite.is_gone(node) and _asked(tree, node):
            function = tree.enclosing(node, cst.FunctionDef)
            fold_expression(rewrite, node, False)
            folded += [f"{owner.name.value}.{function.name.value}"] if function is not None else []
    drop_attribute(rewrite, owner, name, _MAKERS)
    return folded


def _writes(tree: PythonTree, node: cst.Attribute) -> bool:
    above = tree.parent(node)
    if isinstance(above, cst.AnnAssign | cst.AugAssign):
        return above.target is node
    return isinstance(above, cst.AssignTarget | cst.Element | cst.StarredElement | cst.Del)


def _initial(tree: PythonTree, node: cst.Attribute) -> bool:
    """Whether an attribute is assigned an empty value at this place."""
    above = tree.parent(node)
    statement = tree.parent(above) if isinstance(above, cst.AssignTarget) else above
    if not isinstance(statement, cst.Assign | cst.AnnAssign) or statement.value is None:
        return False
    return tree.text[slice(*tree.outer(statement.value))] in _EMPTY


def _asked(tree: PythonTree, node: cst.Attribute) -> bool:
    """Whether only the truth value of an attribute matters at this place."""
    above = tree.parent(node)
    if isinstance(above, cst.UnaryOperation):
        return isinstance(above.operator, cst.Not)
    return isinstance(above, cst.If | cst.IfExp) and above.test is node


def join_return(rewrite: Rewrite, function: cst.FunctionDef) -> None:
    """Replace ``name = value`` directly above ``return name`` with ``return value``, if nothing else uses the name."""
    tree = rewrite.tree
    for block in tree.walk(function):
        if not isinstance(block, cst.IndentedBlock) or len(block.body) < 2:
            continue
        first, second = (_single(item) for item in block.body[-2:])
        if not isinstance(first, cst.Assign) or not isinstance(second, cst.Return) or len(first.targets) != 1:
            continue
        target, value = first.targets[0].target, second.value
        if isinstance(target, cst.Name) and isinstance(value, cst.Name) and value.value == target.value:
            uses = local_uses(rewrite, function, target.value)
            if len(uses) == 2 and sum(is_write(tree, node) for node in uses) == 1:
                start = tree.span(target).start
                rewrite.replace(Span(start, tree.outer(first.value).start), "return ")
                rewrite.remove(second)


def _single(line: cst.CSTNode) -> cst.CSTNode | None:
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None

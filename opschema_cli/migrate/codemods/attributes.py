"""Removes an attribute of a class with its assignments."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from opschema_cli.migrate.codemods.assignments import plain_assignments
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import is_write
from opschema_cli.source.python_tree import PythonTree


def drop_attribute(rewrite: Rewrite, class_def: cst.ClassDef, name: str, pure: Collection[str] = ()) -> None:
    """Remove the statements of a class that assign an attribute, in its body and to ``self`` or ``cls`` in its methods.

    Args:
        rewrite: the round.
        class_def: the class; uses outside it are the caller's to judge.
        name: the attribute.
        pure: names of functions without effect, that the assigned expressions may call.

    Raises:
        Refused: the class does not assign it, still uses it, or assigns it beside other targets or with effects.
    """
    tree = rewrite.tree
    written: list[cst.BaseExpression] = []
    problems: list[Problem] = []
    for node in _uses(tree, class_def, name):
        if rewrite.is_gone(node):
            continue
        if isinstance(node, cst.SimpleString):
            problems.append(Problem(tree.span(node).start, f"a string names {name}"))
        elif _writes(tree, node):
            written.append(node)
        else:
            problems.append(Problem(tree.span(node).start, f"{tree.code(node)} is used"))
    if not problems and not written:
        problems.append(Problem(tree.span(class_def.name).start, f"{class_def.name.value} does not assign {name}"))
    if problems:
        raise Refused(problems)
    rewrite.remove(*plain_assignments(rewrite, written, pure))


def _uses(
    tree: PythonTree, class_def: cst.ClassDef, name: str
) -> Iterator[cst.Attribute | cst.Name | cst.SimpleString]:
    """Yield the attributes of that name in the class, the name in the class's own body, and strings equal to the name."""
    start, end = tree.outer(class_def)
    found: list[cst.Attribute | cst.Name | cst.SimpleString] = [*tree.attributes(name, class_def)]
    found += (node for node in tree.strings(name) if start <= tree.span(node).start < end)
    for node in tree.names(name, class_def):
        scope = next((item for item in tree.ancestors(node) if isinstance(item, cst.FunctionDef | cst.ClassDef)), None)
        if scope is class_def and not isinstance(tree.parent(node), cst.Param):
            found.append(node)
    return iter(found)


def _writes(tree: PythonTree, node: cst.Attribute | cst.Name) -> bool:
    if isinstance(node, cst.Name):
        return is_write(tree, node)
    child: cst.CSTNode = node
    above = tree.parent(node)
    while isinstance(above, cst.Element | cst.StarredElement | cst.Tuple | cst.List):
        child, above = above, tree.parent(above)
    if isinstance(above, cst.AnnAssign | cst.AugAssign | cst.Del | cst.For):
        return above.target is child
    return isinstance(above, cst.AssignTarget)

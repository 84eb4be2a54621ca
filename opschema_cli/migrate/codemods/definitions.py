"""Finds the node of a function in the facts; deletes a function or class, and the statements that only call it."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.source.bodies import Body
from opschema_cli.source.python_tree import Definition, PythonTree


def delete_definition(rewrite: Rewrite, definition: Definition) -> None:
    """Remove a function or class that its own file no longer uses; checking uses elsewhere is up to the caller.

    Raises:
        Refused: the file uses it outside the definition itself, or names it in ``__all__``.
    """
    tree, name = rewrite.tree, definition.name.value
    start, end = tree.outer(definition)
    around = next(
        (item for item in tree.ancestors(definition) if isinstance(item, cst.FunctionDef | cst.ClassDef)), None
    )
    is_method = isinstance(around, cst.ClassDef)
    uses: list[cst.CSTNode] = [*tree.attributes(name)] if is_method else [*tree.names(name), *tree.strings(name)]
    problems = [
        Problem(tree.span(node).start, f"{name} is used")
        for node in uses
        if not start <= tree.span(node).start < end and not rewrite.is_gone(node)
    ]
    if problems:
        raise Refused(problems)
    rewrite.remove(definition)


def delete_calls(rewrite: Rewrite, calls: Iterable[cst.Call]) -> None:
    """Remove the statements that are these calls and nothing else.

    A loop whose body is nothing else is left with ``pass``: whether its iterable matters is the caller's to judge.

    Raises:
        Refused: a call's value is used.
    """
    tree = rewrite.tree
    statements = []
    problems: list[Problem] = []
    for call in calls:
        statement = tree.statement(call)
        if isinstance(statement, cst.Expr) and statement.value is call:
            statements.append(statement)
        elif not rewrite.is_gone(call):
            problems.append(Problem(tree.span(call).start, f"the value of {tree.code(call.func)}() is used"))
    if problems:
        raise Refused(problems)
    rewrite.remove(*statements)


def function_node(tree: PythonTree, body: Body) -> cst.FunctionDef:
    """Return the node of a function with a body from the facts.

    Raises:
        LookupError: there is none.
    """
    assert body.function is not None
    node = tree.parent(tree.find(body.function.span, cst.Name))
    if not isinstance(node, cst.FunctionDef):
        raise LookupError(f"`{body.function.name}` is not a function")
    return node

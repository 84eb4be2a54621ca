"""A validator without its exception for ops that take no tensor: there is nothing left that it would excuse."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.calls import drop_argument
from opschema_cli.migrate.codemods.definitions import delete_definition, function_node
from opschema_cli.migrate.codemods.folding import fold_expression, fold_local, fold_parameter
from opschema_cli.migrate.codemods.names import drop_local
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param
from opschema_cli.source.python_tree import PythonTree
from opschema_rules.tileops.carve_outs import CarveOut
from opschema_rules.tileops.conditions import inside
from opschema_rules.tileops.migrations.drop_carrier.expressions import expression_at


def drop_carve_out(workbench: Workbench, found: CarveOut) -> list[str]:
    """Take an exception out of a validator, with the flags that carry it and the tests that ask for it; the flags' names.

    Raises:
        LeftAlone: what it decides cannot be distinguished from what else is decided there.
    """
    path = found.body.file.path
    for body, param in found.params:
        for other in _callers(workbench, body, param):
            _drop_argument(workbench, other, body, param)
    with workbench.on(path) as rewrite:
        test = expression_at(rewrite.tree, found.test.span)
        words = _words(rewrite.tree, test)
        for body, param in found.params:
            fold_parameter(rewrite, function_node(rewrite.tree, body), param.name, False)
        _fold_test(rewrite, found, test)
        if found.body.function is not None:
            _drop_locals(rewrite, function_node(rewrite.tree, found.body), words)
    return [*([found.flag] if found.flag else []), *(param.name for _, param in found.params)]


def _words(tree: PythonTree, node: cst.CSTNode) -> list[str]:
    return [item.value for item in tree.walk(node) if isinstance(item, cst.Name)]


def _pure(tree: PythonTree, node: cst.CSTNode) -> set[str]:
    """Names that an expression calls: they were called for the test alone."""
    names = (dotted(item.func) for item in tree.walk(node) if isinstance(item, cst.Call))
    return {name.rpartition(".")[2] for name in names}


# The test


def _fold_test(rewrite: Rewrite, found: CarveOut, test: cst.BaseExpression) -> None:
    if rewrite.is_gone(test):
        return
    function = function_node(rewrite.tree, found.body) if found.body.function is not None else None
    bound = next(
        (item for item in found.body.scope.assigns if item.value is not None and item.value.span == found.test.span),
        None,
    )
    if bound is not None and function is not None:
        fold_local(rewrite, function, bound.target, False, _pure(rewrite.tree, test))
    elif any(value.span == found.test.span for value in found.body.scope.returns) and function is not None:
        _fold_helper(rewrite, function)
    elif any(inside(found.test.span, value.span) for value in found.body.scope.returns):
        raise LeftAlone(found.body.at(found.test), "the exception is part of the result of this function")
    else:
        fold_expression(rewrite, test, False)
        _drop_empty(rewrite, test)


def _fold_helper(rewrite: Rewrite, helper: cst.FunctionDef) -> None:
    """Fold the calls of a function that identifies such ops, and delete it."""
    tree = rewrite.tree
    for call in tree.calls(helper.name.value):
        statement = tree.statement(call)
        caller = tree.enclosing(call, cst.FunctionDef)
        target = (
            statement.targets[0].target if isinstance(statement, cst.Assign) and len(statement.targets) == 1 else None
        )
        if (
            isinstance(statement, cst.Assign)
            and statement.value is call
            and isinstance(target, cst.Name)
            and caller is not None
        ):
            fold_local(rewrite, caller, target.value, False, _pure(rewrite.tree, call))
        else:
            fold_expression(rewrite, call, False)
            _drop_empty(rewrite, call)
        if caller is not None:
            _drop_locals(rewrite, caller, _words(rewrite.tree, call))
    delete_definition(rewrite, helper)


def _drop_empty(rewrite: Rewrite, test: cst.CSTNode) -> None:
    """Remove a condition with nothing left in it."""
    statement = rewrite.tree.enclosing(test, cst.If)
    outer = rewrite.tree.enclosing(statement, cst.If) if statement is not None else None
    while outer is not None and outer.orelse is None and not list(rewrite.remaining(outer.body.body)):
        rewrite.remove(outer)
        outer = rewrite.tree.enclosing(outer, cst.If)


def _drop_locals(rewrite: Rewrite, function: cst.FunctionDef, names: Iterable[str]) -> None:
    """Remove the locals that only the test read, and those that only these read."""
    params = {item.name.value for item in function.params.params} | {
        item.name.value for item in function.params.kwonly_params
    }
    for name in dict.fromkeys(names):
        writes = [
            statement
            for node in rewrite.tree.names(name)
            if (statement := _assigning(rewrite, node, function)) is not None
        ]
        if name in params or not writes:
            continue
        try:
            drop_local(rewrite, function, name, {word for item in writes for word in _pure(rewrite.tree, item.value)})
        except Refused:
            continue
        _drop_locals(rewrite, function, [word for item in writes for word in _words(rewrite.tree, item.value)])


def _assigning(rewrite: Rewrite, node: cst.Name, function: cst.FunctionDef) -> cst.Assign | None:
    tree = rewrite.tree
    statement = tree.parent(tree.parent(node) or node)
    ours = tree.enclosing(node, cst.FunctionDef) is function and isinstance(tree.parent(node), cst.AssignTarget)
    return statement if ours and isinstance(statement, cst.Assign) and not rewrite.is_gone(statement) else None


# The flag that carries it


def _callers(workbench: Workbench, body: Body, param: Param) -> list[str]:
    """The files that may pass a flag: that of its function, and others that mention both."""
    function = body.function
    assert function is not None
    project = workbench.draft.project
    paths = [path for path in project.workspace.files if path.endswith(".py")]
    named = {item.place.path for item in mentions(project, {param.name}, paths)}
    called = {item.place.path for item in mentions(project, {function.name}, sorted(named))}
    return sorted(called)


def _drop_argument(workbench: Workbench, path: str, body: Body, param: Param) -> None:
    """Remove a flag from the calls in a file; a test that sets it is removed entirely."""
    function = body.function
    assert function is not None
    place = function.params.index(param) if param.kind in ("posonly", "normal") else None
    with workbench.on(path) as rewrite:
        for call in rewrite.tree.calls(function.name):
            if rewrite.is_gone(call):
                continue
            given = _given(call, param.name, place)
            if given is None or path == body.file.path or _is_false(given):
                drop_argument(rewrite, call, param.name, place)
            else:
                rewrite.remove(_test_around(rewrite.tree, call, path, given))


def _given(call: cst.Call, name: str, place: int | None) -> cst.BaseExpression | None:
    for index, arg in enumerate(call.args):
        if (arg.keyword is not None and arg.keyword.value == name) or (arg.keyword is None and index == place):
            return arg.value
    return None


def _is_false(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "False"


def _test_around(
    tree: PythonTree, call: cst.Call, path: str, given: cst.BaseExpression
) -> cst.FunctionDef | cst.ClassDef:
    """Return the test around a call, which tests the exception; its class if that contains no other test."""
    functions = [item for item in tree.ancestors(call) if isinstance(item, cst.FunctionDef)]
    literal = isinstance(given, cst.Name) and given.value == "True"
    if not literal or not functions or not functions[-1].name.value.startswith("test"):
        raise LeftAlone(Place(path, tree.span(call)), f"this sets `{tree.code(given)}` for the exception")
    around = tree.enclosing(functions[-1], cst.ClassDef)
    return around if around is not None and len(around.body.body) == 1 else functions[-1]

"""Inlines a private method into the method that does nothing else in the end than call it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from opschema_cli.migrate.codemods.names import rename_local
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import all_parameters, is_write
from opschema_cli.source.python_tree import PythonTree, Statement
from opschema_cli.source.text import Span


def inline_method(rewrite: Rewrite, caller: cst.FunctionDef, callee: cst.FunctionDef) -> None:
    """Give ``callee``'s body to ``caller``, whose last statement calls it, and take ``callee`` out.

    The caller keeps its decorators, signature, docstring and the statements before the call; the method stands where the
    callee stood. Parameters that the call passes under another name are renamed in the body.

    Args:
        rewrite: the round; statements that it removed from the caller no longer count.
        caller: the method that stays.
        callee: the method that goes, of the same class; uses outside the class are the caller's to judge.

    Raises:
        Refused: the call is not the last thing that the caller does, something else in the class uses the callee, the
            call does not pass plain names for all parameters, or names of the two clash.
    """
    tree = rewrite.tree
    call, last = _last_call(rewrite, caller, callee)
    problems = [*_shape(tree, caller, callee), *_other_uses(rewrite, caller, callee, call)]
    if problems:
        raise Refused(problems)
    if isinstance(last, cst.Expr) and any(
        isinstance(node, cst.Return) and node.value for node in tree.walk(callee.body)
    ):
        raise _refused(tree, last, f"{callee.name.value}() returns a value that {caller.name.value}() does not")
    renamed = _renamed(tree, caller, callee, call)
    clashes = list(_clashes(rewrite, caller, callee, set(renamed)))
    if clashes:
        raise Refused(clashes)
    with rewrite.all_or_nothing():
        for old, new in renamed.items():
            if old != new:
                rename_local(rewrite, callee, old, new)
        _join(rewrite, caller, callee, last)


def _last_call(
    rewrite: Rewrite, caller: cst.FunctionDef, callee: cst.FunctionDef
) -> tuple[cst.Call, cst.Return | cst.Expr]:
    left = list(rewrite.remaining(caller.body.body))
    last = left[-1] if left else None
    if isinstance(last, cst.Return | cst.Expr) and isinstance(last.value, cst.Call):
        func = last.value.func
        if isinstance(func, cst.Attribute) and func.attr.value == callee.name.value and _is_self(caller, func.value):
            return last.value, last
    raise _refused(
        rewrite.tree, last or caller, f"{caller.name.value}() does not end in a call of {callee.name.value}()"
    )


def _is_self(method: cst.FunctionDef, node: cst.CSTNode) -> bool:
    params = all_parameters(method.params)
    return bool(params) and isinstance(node, cst.Name) and node.value == params[0].name.value


def _shape(tree: PythonTree, caller: cst.FunctionDef, callee: cst.FunctionDef) -> Iterator[Problem]:
    at, name = tree.span(callee.name).start, callee.name.value
    if tree.parent(caller) is not tree.parent(callee) or not isinstance(
        tree.enclosing(callee, cst.ClassDef), cst.ClassDef
    ):
        yield Problem(at, f"{name}() and {caller.name.value}() are not in one class")
    if callee.decorators:
        yield Problem(at, f"{name}() is decorated")
    if (
        caller.asynchronous
        or callee.asynchronous
        or any(isinstance(node, cst.Yield) for node in tree.walk(callee.body))
    ):
        yield Problem(at, f"{name}() is a coroutine or a generator")
    if not isinstance(caller.body, cst.IndentedBlock) or not isinstance(callee.body, cst.IndentedBlock):
        yield Problem(at, "a body is written on the line of its def")
    elif tree.indent(tree.span(caller.body).start) != tree.indent(tree.span(callee.body).start):
        yield Problem(at, "the bodies are indented differently")
    first = callee.body.body[0]
    if tree.docstring(callee) is not None and (len(callee.body.body) == 1 or len(getattr(first, "body", [])) > 1):
        yield Problem(at, f"{name}() does nothing, or something on the line of its docstring")
    params = [all_parameters(method.params)[:1] for method in (caller, callee)]
    if [item.name.value for items in params[:1] for item in items] != [
        item.name.value for items in params[1:] for item in items
    ]:
        yield Problem(at, f"{name}() and {caller.name.value}() do not name their first parameter alike")


def _other_uses(
    rewrite: Rewrite, caller: cst.FunctionDef, callee: cst.FunctionDef, call: cst.Call
) -> Iterator[Problem]:
    tree, name = rewrite.tree, callee.name.value
    around = tree.enclosing(caller, cst.ClassDef)
    for node in tree.walk(around) if around is not None else ():
        other = (type(node) is cst.Attribute and node.attr.value == name and node is not call.func) or (
            type(node) is cst.SimpleString and node.raw_value == name
        )
        if other and not rewrite.is_gone(node):
            yield Problem(tree.span(node).start, f"{name}() is used here too")


def _renamed(tree: PythonTree, caller: cst.FunctionDef, callee: cst.FunctionDef, call: cst.Call) -> dict[str, str]:
    """Map the callee's parameters to the caller's names for the values that it passes."""
    known = {param.name.value for param in all_parameters(caller.params)}
    known |= {node.value for node in tree.walk(caller.body) if isinstance(node, cst.Name) and is_write(tree, node)}
    passed: dict[str, str] = {}
    params = all_parameters(callee.params)[1:]
    by_place = [param for param in params if param not in callee.params.kwonly_params]
    for index, arg in enumerate(call.args):
        value = arg.value.value if isinstance(arg.value, cst.Name) else ""
        param = _parameter(params, by_place, arg, index)
        if param is None or value not in known or value in passed.values():
            raise _refused(tree, arg, f"`{tree.code(arg)}` is not a variable passed for a parameter of its own")
        passed[param.name.value] = value
    missing = [param.name.value for param in params if param.name.value not in passed]
    if missing:
        raise _refused(tree, call, f"the call passes nothing for {', '.join(missing)}")
    return passed


def _parameter(params: list[cst.Param], by_place: list[cst.Param], arg: cst.Arg, index: int) -> cst.Param | None:
    if arg.keyword is not None:
        return next((param for param in params if param.name.value == arg.keyword.value and not param.star), None)
    if arg.star:
        return next((param for param in params if param.star == arg.star), None)
    return by_place[index] if index < len(by_place) and not by_place[index].star else None


def _clashes(rewrite: Rewrite, caller: cst.FunctionDef, callee: cst.FunctionDef, params: set[str]) -> Iterator[Problem]:
    """Yield the names in the callee's body that would refer to a variable of the caller."""
    tree = rewrite.tree
    own = {param.name.value for param in all_parameters(caller.params)[1:]}
    own |= {
        node.value
        for node in tree.walk(caller.body)
        if isinstance(node, cst.Name) and is_write(tree, node) and not rewrite.is_gone(node)
    }
    start, end = tree.span(callee.body)
    for name in sorted(own - params):
        for node in tree.names(name):
            if start <= tree.span(node).start < end and not rewrite.is_gone(node):
                yield Problem(tree.span(node).start, f"{name} is a variable of {caller.name.value}() as well")


def _join(rewrite: Rewrite, caller: cst.FunctionDef, callee: cst.FunctionDef, last: Statement) -> None:
    """Put the caller's head, down to the call, in place of the callee's."""
    tree = rewrite.tree
    line = tree.line_start(tree.span(last).start)
    if tree.text[line : tree.span(last).start].strip():
        raise _refused(tree, last, "the call shares its line with another statement")
    head = Span(tree.top(caller), tree.top(last))
    start = tree.line_end(tree.span(getattr(callee.body, "header", callee.body)).start)
    if tree.docstring(callee) is not None and tree.docstring(caller) is not None:
        start = tree.top(callee.body.body[1])
    rewrite.move(caller, head, Span(tree.line_start(tree.outer(callee).start), start))


def _refused(tree: PythonTree, node: cst.CSTNode, reason: str) -> Refused:
    return Refused([Problem(tree.span(node).start, reason)])

"""Edits of a function's parameters: drop, add or rename them, make them keyword-only, or change their defaults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst

from opschema_cli.migrate.codemods.docstrings import rename_docstring_parameter
from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.names import rename_local
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import all_parameters
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span

Listed: TypeAlias = "cst.Param | cst.ParamStar | cst.ParamSlash"
"""An item between commas in a signature."""

_TYPE_COMMENT = re.compile(r"#\s*type:\s*\(")


def parameter(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> cst.Param:
    """A parameter by its name.

    Raises:
        Refused: the function has none of that name.
    """
    for param in all_parameters(function.params):
        if param.name.value == name:
            return param
    raise _refused(rewrite.tree, function.name, f"{function.name.value}() has no parameter {name}")


def check_parameter(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> None:
    """Whether a parameter can be dropped.

    Raises:
        Refused: there is none, it is ``*args`` or ``**kwargs``, or a type comment counts the parameters.
    """
    param = parameter(rewrite, function, name)
    if isinstance(param.star, str) and param.star:
        raise _refused(rewrite.tree, param, f"{name} is {param.star}{name}")
    _refuse_type_comment(rewrite.tree, function)


def drop_parameter(rewrite: Rewrite, function: cst.FunctionDef, name: str) -> None:
    """Take a parameter out of a signature, with a ``*`` or ``/`` that it alone needed; its uses are the caller's.

    Raises:
        Refused: as :func:`check_parameter`.
    """
    check_parameter(rewrite, function, name)
    listed = listed_parameters(function.params)
    index = next(i for i, item in enumerate(listed) if isinstance(item, cst.Param) and item.name.value == name)
    rewrite.drop(listed, index)
    needed_by = {cst.ParamStar: function.params.kwonly_params, cst.ParamSlash: function.params.posonly_params}
    for at, item in enumerate(listed):
        if not isinstance(item, cst.Param) and all(map(rewrite.is_gone, needed_by[type(item)])):
            rewrite.drop(listed, at)


def rename_parameter(rewrite: Rewrite, function: cst.FunctionDef, old: str, new: str) -> None:
    """Rename a parameter, its uses in the function and its entry in the docstring; calls are the caller's.

    Raises:
        Refused: there is none, or the function uses the new name.
    """
    param = parameter(rewrite, function, old)
    rename_local(rewrite, function, old, new)
    rewrite.replace(rewrite.tree.span(param.name), new)
    rename_docstring_parameter(rewrite, function, old, new)


def add_parameter(
    rewrite: Rewrite, function: cst.FunctionDef, code: str, after: str | None = None, keyword_only: bool = False
) -> None:
    """Add a parameter.

    Args:
        rewrite: the round.
        function: the function.
        code: the parameter as written in a signature (``base: float = 10000.0``).
        after: the parameter behind which it goes; without it the last one of its kind, ``self`` at least.
        keyword_only: whether it goes behind the ``*``, which is added where there is none.

    Raises:
        Refused: the name is taken, ``after`` is not there or of the other kind, or the order would be no Python.
    """
    tree, params = rewrite.tree, function.params
    name = re.split(r"\W", code.strip(), maxsplit=1)[0]
    if any(param.name.value == name for param in all_parameters(params)):
        raise _refused(tree, function.name, f"{function.name.value}() has a parameter {name}")
    _refuse_type_comment(tree, function)
    peers = params.kwonly_params if keyword_only else [*params.posonly_params, *params.params]
    anchor = _anchor(rewrite, function, peers, after)
    if anchor is not None and not keyword_only:
        refuse = _refuse_required_behind if "=" in code else _refuse_order
        refuse(tree, peers, anchor, name)
    if anchor is None and keyword_only and isinstance(params.star_arg, cst.Param):
        _insert(rewrite, function, params.star_arg, code)
    elif anchor is None and keyword_only:
        _insert(
            rewrite, function, next(reversed([*params.posonly_params, *params.params]), None), f"*, {code}", first=True
        )
    else:
        _insert(rewrite, function, anchor, code, first=anchor is None)


def _anchor(
    rewrite: Rewrite, function: cst.FunctionDef, peers: Sequence[cst.Param], after: str | None
) -> cst.Param | None:
    if after is None:
        return peers[-1] if peers else None
    for param in peers:
        if param.name.value == after:
            return param
    raise _refused(rewrite.tree, function.name, f"{function.name.value}() has no such parameter as {after}")


def set_default(rewrite: Rewrite, function: cst.FunctionDef, name: str, code: str | None) -> None:
    """Write a parameter's default, or take it away (None).

    Raises:
        Refused: there is no such parameter, or parameters with and without a default would stand in a wrong order.
    """
    tree = rewrite.tree
    param = parameter(rewrite, function, name)
    peers = [*function.params.posonly_params, *function.params.params]
    if param.star:
        raise _refused(tree, param, f"{param.star}{name} can have no default")
    if param.default is None and code is not None:
        if param in peers:
            _refuse_required_behind(tree, peers, param, name)
        equals = " = " if param.annotation is not None else "="
        rewrite.replace(_at(element_span(tree, param).end), f"{equals}{code}")
    elif param.default is not None and code is not None:
        rewrite.replace(tree.outer(param.default), code)
    elif param.default is not None:
        if param in peers:
            _refuse_order(tree, peers[: peers.index(param)], None, name)
        before = param.annotation.annotation if param.annotation is not None else param.name
        rewrite.replace(Span(tree.outer(before).end, tree.outer(param.default).end), "")


def listed_parameters(params: cst.Parameters) -> list[Listed]:
    """Return everything that commas separate in a signature."""
    slash = [params.posonly_ind] if isinstance(params.posonly_ind, cst.ParamSlash) else []
    star = [params.star_arg] if isinstance(params.star_arg, cst.Param | cst.ParamStar) else []
    last = [params.star_kwarg] if params.star_kwarg is not None else []
    return [*params.posonly_params, *slash, *params.params, *star, *params.kwonly_params, *last]


def _insert(
    rewrite: Rewrite, function: cst.FunctionDef, anchor: cst.Param | None, code: str, *, first: bool = False
) -> None:
    """Insert a parameter after another; ``first`` if it is the first of its kind. A round can add only one of those."""
    tree = rewrite.tree
    listed = listed_parameters(function.params)
    index = next((i + 1 for i, item in enumerate(listed) if item is anchor), 0)
    if index < len(listed):
        at, text = element_span(tree, listed[index]).start, _spread(tree, listed[index], code)
    elif anchor is None:
        at, text = tree.text.index("(", tree.span(function.name).end) + 1, code
    else:
        start, end = element_span(tree, anchor)
        space = " " if tree.text[tree.line_start(start) : start].strip() else _newline(tree, start)
        comma = isinstance(anchor.comma, cst.Comma)
        at = tree.span(anchor.comma).end if isinstance(anchor.comma, cst.Comma) else end
        text = f"{space}{code}," if comma else f",{space}{code}"
    if first and rewrite.inserts_at(at):
        raise _refused(tree, function.name, f"{function.name.value}() was given a first such parameter in this round")
    rewrite.replace(_at(at), text)


def _spread(tree: PythonTree, before: cst.CSTNode, code: str) -> str:
    """Return ``code`` for insertion before an element, on its own line if the element has its own line."""
    start = element_span(tree, before).start
    alone = not tree.text[tree.line_start(start) : start].strip()
    return f"{code},{_newline(tree, start) if alone else ' '}"


def _newline(tree: PythonTree, offset: int) -> str:
    line_end = tree.line_end(offset)
    line = tree.text[tree.line_start(offset) : line_end]
    return line[len(line.rstrip("\r\n")) :] + tree.indent(offset)


def _at(offset: int) -> Span:
    return Span(offset, offset)


def _refuse_order(tree: PythonTree, peers: Sequence[cst.Param], last: cst.Param | None, name: str) -> None:
    """Refuse a parameter without a default after one with a default."""
    for param in peers:
        if param.default is not None:
            raise _refused(tree, param, f"{name} has no default and would follow {param.name.value}, which has one")
        if param is last:
            return


def _refuse_required_behind(tree: PythonTree, peers: Sequence[cst.Param], anchor: cst.Param, name: str) -> None:
    for param in peers[peers.index(anchor) + 1 :]:
        if param.default is None:
            raise _refused(tree, param, f"{param.name.value} has no default and would follow {name}, which has one")


def _refuse_type_comment(tree: PythonTree, function: cst.FunctionDef) -> None:
    start = tree.span(function.params).end
    first = function.body.body[0] if function.body.body else function
    if _TYPE_COMMENT.search(tree.text[start : tree.outer(first).start]):
        raise _refused(tree, function.name, f"a type comment counts the parameters of {function.name.value}()")


def _refused(tree: PythonTree, node: cst.CSTNode, reason: str) -> Refused:
    return Refused([Problem(tree.span(node).start, reason)])

"""Imports that a module needs to have added: to an existing statement, or in a new one next to those of its kind."""

from __future__ import annotations

import sys

import libcst as cst

from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span


def extend_import(rewrite: Rewrite, statement: cst.ImportFrom, name: str) -> None:
    """Import one more name by a statement, where its order puts it.

    Raises:
        Refused: it imports ``*``, or the module uses the name already.
    """
    tree = rewrite.tree
    _refuse_taken(tree, name)
    if isinstance(statement.names, cst.ImportStar):
        raise Refused([Problem(tree.span(statement).start, "it imports `*`")])
    listed = list(statement.names)
    following = next((alias for alias in listed if _order(dotted(alias.name)) > _order(name)), None)
    if following is not None:
        start = element_span(tree, following).start
        alone = not tree.text[tree.line_start(start) : start].strip()
        rewrite.replace(Span(start, start), f"{name},{_newline(tree, start) if alone else ' '}")
        return
    last = listed[-1]
    start, end = element_span(tree, last)
    comma = tree.span(last.comma).end if isinstance(last.comma, cst.Comma) else None
    alone = not tree.text[tree.line_start(start) : start].strip()
    space = _newline(tree, start) if alone else " "
    text = f"{space}{name}," if comma else f",{space}{name}"
    rewrite.replace(Span(comma or end, comma or end), text)


def add_import(rewrite: Rewrite, module: str, name: str) -> None:
    """Import a name from a module of the standard library, at the module's top.

    Raises:
        Refused: the module uses the name already.
    """
    tree = rewrite.tree
    _refuse_taken(tree, name)
    lines = [item for item in tree.module.body if isinstance(item, cst.SimpleStatementLine)]
    imports = [item for item in lines if isinstance(item.body[0], cst.Import | cst.ImportFrom)]
    for line in imports:
        small = line.body[0]
        if (
            isinstance(small, cst.ImportFrom)
            and _module(small) == module
            and not isinstance(small.names, cst.ImportStar)
        ):
            extend_import(rewrite, small, name)
            return
    _new_line(rewrite, [line for line in imports if _module(line.body[0]) != "__future__"], module, name)


def _new_line(rewrite: Rewrite, imports: list[cst.SimpleStatementLine], module: str, name: str) -> None:
    tree = rewrite.tree
    newline = tree.module.default_newline
    text = f"from {module} import {name}{newline}"
    block = _first_block(tree, imports)
    if not block:
        at = _behind_head(tree)
        before = newline if at and not tree.text[:at].endswith(newline * 2) else ""
        after = "" if tree.text[at:].startswith(newline) or at == len(tree.text) else newline * 2
        rewrite.replace(Span(at, at), before + text + after)
    elif not _is_standard(block[0].body[0]):
        at = tree.top(block[0].body[0]) or tree.line_start(tree.span(block[0]).start)
        rewrite.replace(Span(at, at), text + newline)
    else:
        following = (
            line for line in block if isinstance(line.body[0], cst.ImportFrom) and _module(line.body[0]) > module
        )
        line = next(following, None)
        at = tree.top(line.body[0]) if line is not None else tree.line_end(tree.span(block[-1]).end)
        rewrite.replace(Span(at, at), text)


def _first_block(tree: PythonTree, imports: list[cst.SimpleStatementLine]) -> list[cst.SimpleStatementLine]:
    """The imports from the first on without a blank line or another statement between; of the standard library, if it is."""
    block: list[cst.SimpleStatementLine] = []
    for line in imports:
        if block:
            gap = tree.text[tree.line_end(tree.span(block[-1]).end) : tree.line_start(tree.span(line).start)]
            if gap.strip() or "\n" in gap or _is_standard(line.body[0]) != _is_standard(block[0].body[0]):
                break
        block.append(line)
    return block


def _behind_head(tree: PythonTree) -> int:
    """End of the module's docstring and its imports from ``__future__``."""
    at = 0
    for item in tree.module.body:
        small = item.body[0] if isinstance(item, cst.SimpleStatementLine) else None
        documents = isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString) and not at
        if small is None or not (documents or _module(small) == "__future__"):
            break
        at = tree.line_end(tree.span(item).end)
    return at


def _module(node: cst.CSTNode) -> str:
    """The module that a statement imports or imports from; empty for a relative one."""
    if isinstance(node, cst.ImportFrom):
        return "" if node.relative else dotted(node.module)
    return dotted(node.names[0].name) if isinstance(node, cst.Import) else ""


def _is_standard(node: cst.CSTNode) -> bool:
    return _module(node).partition(".")[0] in sys.stdlib_module_names


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, each by name: the order that isort and ruff keep."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def _newline(tree: PythonTree, offset: int) -> str:
    line = tree.text[tree.line_start(offset) : tree.line_end(offset)]
    return line[len(line.rstrip("\r\n")) :] + tree.indent(offset)


def _refuse_taken(tree: PythonTree, name: str) -> None:
    for node in tree.names(name):
        raise Refused([Problem(tree.span(node).start, f"{name} is used here already")])

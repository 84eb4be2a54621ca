"""Imports that nothing uses any more, and names in ``__all__``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.source.python_tree import PythonTree, Statement

_TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore\b)(?P<text>[^#\r\n]*)")
_TAKES_TYPES = frozenset({"cast", "TypeVar", "NewType", "NamedTuple", "TypedDict", "get_type_hints"})


def drop_imports(rewrite: Rewrite, names: Iterable[str]) -> None:
    """Remove the module-level imports that bind these names and that nothing uses any more.

    Raises:
        Refused: a name is still used or exported, or imported otherwise than by plain imports of the module.
    """
    wanted = list(names)
    problems = [problem for name in wanted for problem in _problems(rewrite, name)]
    if problems:
        raise Refused(problems)
    for name in wanted:
        for alias in _aliases(rewrite.tree, name):
            _drop_alias(rewrite, alias)


def unused_imports(rewrite: Rewrite, names: Iterable[str]) -> list[str]:
    """The names that :func:`drop_imports` would remove."""
    return [name for name in names if not any(_problems(rewrite, name))]


def drop_exports(rewrite: Rewrite, names: Collection[str]) -> None:
    """Take names out of ``__all__``; nothing where they are not in it.

    Raises:
        Refused: ``__all__`` is made in a way that is not read.
    """
    tree = rewrite.tree
    problems = [
        Problem(tree.span(node).start, "`__all__` is made in a way that is not read")
        for node in tree.names("__all__")
        if not (_is_read(tree, node) or _container(tree, node) is not None)
    ]
    if problems:
        raise Refused(problems)
    for node in tree.names("__all__"):
        _drop_exported(rewrite, node, names)


# Imports


def _problems(rewrite: Rewrite, name: str) -> Iterator[Problem]:
    tree = rewrite.tree
    aliases = _aliases(tree, name)
    if not aliases:
        yield Problem(0, f"{name} is not imported")
    for alias in aliases:
        home = tree.parent(tree.statement(alias))
        if not isinstance(home, cst.SimpleStatementLine) or not isinstance(tree.parent(home), cst.Module):
            yield Problem(tree.span(alias).start, f"{name} is imported under a condition or in a function")
        if alias.asname is not None and dotted(alias.name) == name:
            yield Problem(tree.span(alias).start, f"`import {name} as {name}` exports it")
    for node in tree.names(name):
        if tree.enclosing(node, cst.ImportAlias) is None and not rewrite.is_gone(node):
            yield Problem(tree.span(node).start, f"{name} is used")
    for text in tree.strings(name):
        if _is_exported(tree, text) and not rewrite.is_gone(text):
            yield Problem(tree.span(text).start, f"{name} is in `__all__`")
    yield from _quoted(rewrite, name)


def _quoted(rewrite: Rewrite, name: str) -> Iterator[Problem]:
    """Uses in annotations that are strings, and in type comments."""
    tree = rewrite.tree
    word = re.compile(rf"\b{re.escape(name)}\b")
    for node in tree.literals:
        if (
            name in node.raw_value
            and word.search(node.raw_value)
            and _is_annotation(tree, node)
            and not rewrite.is_gone(node)
        ):
            yield Problem(tree.span(node).start, f"{name} is used in a quoted annotation")
    for match in _TYPE_COMMENT.finditer(tree.text) if "type:" in tree.text else ():
        if word.search(match["text"]):
            yield Problem(match.start(), f"{name} is used in a type comment")


def _is_annotation(tree: PythonTree, node: cst.SimpleString) -> bool:
    for above in tree.ancestors(node):
        if isinstance(above, cst.Annotation):
            return True
        if isinstance(above, cst.Call) and dotted(above.func).rpartition(".")[2] in _TAKES_TYPES:
            return True
        if isinstance(above, cst.AnnAssign | cst.BaseSmallStatement | cst.BaseCompoundStatement):
            return False
    return False


def _aliases(tree: PythonTree, name: str) -> list[cst.ImportAlias]:
    found: dict[int, cst.ImportAlias] = {}
    for node in tree.names(name):
        alias = tree.enclosing(node, cst.ImportAlias)
        if alias is not None and _local_name(alias) == name:
            found[id(alias)] = alias
    return list(found.values())


def _local_name(alias: cst.ImportAlias) -> str:
    return dotted(alias.asname.name) if alias.asname is not None else dotted(alias.name).partition(".")[0]


def _drop_alias(rewrite: Rewrite, alias: cst.ImportAlias) -> None:
    statement = rewrite.tree.parent(alias)
    if isinstance(statement, cst.Import | cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
        names = list(statement.names)
        rewrite.drop(statement.names, next(index for index, item in enumerate(names) if item is alias))
        if all(rewrite.is_gone(item) for item in names):
            rewrite.remove(statement)


# Exports


def _drop_exported(rewrite: Rewrite, node: cst.Name, names: Collection[str]) -> None:
    tree = rewrite.tree
    container = _container(tree, node)
    if isinstance(container, cst.List | cst.Tuple):
        indexes = [index for index, item in enumerate(container.elements) if _text(item.value) in names]
        if indexes:
            rewrite.drop(container.elements, *indexes, singleton_comma=isinstance(container, cst.Tuple))
    elif container is not None and _text(container) in names:
        rewrite.remove(tree.statement(node))


def _container(tree: PythonTree, node: cst.Name) -> cst.BaseExpression | None:
    """The list or tuple that ``__all__`` is assigned or extended by, or the string that is appended."""
    statement = tree.statement(node)
    value = _added(tree, node, statement)
    if isinstance(value, cst.List | cst.Tuple):
        return value if all(_text(item.value) is not None for item in value.elements) else None
    return value if isinstance(value, cst.SimpleString) else None


def _added(tree: PythonTree, node: cst.Name, statement: Statement) -> cst.BaseExpression | None:
    if isinstance(statement, cst.Assign | cst.AnnAssign | cst.AugAssign):
        return statement.value
    above = tree.parent(node)
    call = tree.parent(above) if isinstance(above, cst.Attribute) else None
    if (
        isinstance(statement, cst.Expr)
        and statement.value is call
        and isinstance(call, cst.Call)
        and len(call.args) == 1
    ):
        return call.args[0].value
    return None


def _is_read(tree: PythonTree, node: cst.Name) -> bool:
    """Whether ``__all__`` is only read: as an argument, as an iterable or as a part of another module's list."""
    above = tree.parent(node)
    return isinstance(above, cst.Arg | cst.For | cst.CompFor | cst.ImportAlias | cst.ComparisonTarget)


def _is_exported(tree: PythonTree, text: cst.SimpleString) -> bool:
    return any(isinstance(node, cst.Name) and node.value == "__all__" for node in tree.walk(tree.statement(text)))


def _text(node: cst.CSTNode) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None

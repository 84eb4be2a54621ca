"""The statements of a module in order, with the comments before them, for reading old tests."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

import libcst as cst
import msgspec

from opschema_cli.source.python_tree import PythonTree, Statement


class Unclear(Exception):  # noqa: N818 - an answer, not a fault
    """Raised with the reason why a test is left to a person."""


class Piece(msgspec.Struct, frozen=True):
    """An expression as written in its file, indented like a statement of the module, and the comments before it."""

    text: str
    comments: tuple[str, ...] = ()


class Line(msgspec.Struct, frozen=True):
    """A top-level statement, from the end of the previous one: ``start`` is the beginning of its own line."""

    statement: Statement
    before: int
    start: int
    end: int


def lines_of(tree: PythonTree) -> Iterator[Line]:
    """Yield the top-level statements of a module.

    Raises:
        Unclear: two share a line.
    """
    before = len(header_of(tree))
    for item in tree.module.body:
        parts = item.body if isinstance(item, cst.SimpleStatementLine) else [item]
        if len(parts) != 1:
            raise Unclear("it has several statements in one line")
        (statement,) = parts
        start, end = tree.outer(statement)
        line = Line(statement, before, tree.line_start(start), tree.line_end(max(start, end - 1)))
        yield line
        before = line.end


def header_of(tree: PythonTree) -> str:
    """Return the comments at the beginning of a file, up to a blank line or the first statement."""
    end = 0
    while tree.text[end:].startswith("#"):
        end = tree.line_end(end)
    return tree.text[:end]


def targets_of(statement: cst.CSTNode) -> set[str]:
    """Return the name that a statement assigns, if it does nothing else."""
    targets = [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else []
    return {item.value for item in targets if isinstance(item, cst.Name)} if len(targets) == 1 else set()


def bound(statement: cst.CSTNode) -> set[str]:
    """Return the names that an import binds."""
    if not isinstance(statement, cst.Import | cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
        return set()
    names = (item.evaluated_alias or item.evaluated_name.partition(".")[0] for item in statement.names)
    return set(names)


def comments_in(text: str) -> tuple[str, ...]:
    """Return the comments in a piece of Python with balanced brackets."""
    tokens = tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline)
    return tuple(token.string for token in tokens if token.type == tokenize.COMMENT)

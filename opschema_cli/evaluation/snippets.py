"""Parts of expressions that the facts of a module leave out: the holes of f-strings, the branches of ``a if c else b``."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from typing import Literal

from opschema_cli.evaluation.limits import MAX_CHARACTERS
from opschema_cli.source.python import Expr


@lru_cache(maxsize=2048)
def parse(text: str) -> ast.expr | None:
    """An expression's syntax tree, places counted from one character before it; None when it does not parse, or is long.

    The tree is the same for all that have the text: most annotations of a library are one of ten.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def formatted(node: ast.expr) -> list[str | ast.expr | None] | None:
    """The parts of an f-string: its text, and what its plain holes hold; None for a hole with a format. None for anything else."""
    if not isinstance(node, ast.JoinedStr):
        return None
    found: list[str | ast.expr | None] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            found.append(str(part.value))
        elif isinstance(part, ast.FormattedValue) and part.conversion in (-1, 115) and part.format_spec is None:
            found.append(part.value)
        else:
            found.append(None)
    return found


def expression(text: str, start: int, node: ast.expr) -> Expr:
    """A node of the tree that :func:`parse` made of ``text`` as a fact; ``start`` is where the text begins in its file."""
    return _Reader(text, start).read(node)


_COMPARISONS: dict[type[ast.cmpop], str] = {ast.Is: "is", ast.IsNot: "is-not", ast.Eq: "==", ast.NotEq: "!="}


class _Reader:
    """Turns nodes into facts."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start = f"({text})", start - 1
        self.lines = [0]
        for line in self.text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def read(self, node: ast.expr) -> Expr:
        span = (self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
            return Expr("const", *span, "", node.value)
        name = dotted(node)
        if name:
            return Expr("name", *span, name)
        if isinstance(node, ast.Call):
            return self._call(node, *span)
        if isinstance(node, ast.Attribute):
            return Expr("attribute", *span, node.attr, None, (self.read(node.value),))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Expr("unary", *span, "not", None, (self.read(node.operand),))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return Expr("binary", *span, "+", None, (self.read(node.left), self.read(node.right)))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            word = _COMPARISONS.get(type(node.ops[0]), "?")
            return Expr("compare", *span, word, None, (self.read(node.left), self.read(node.comparators[0])))
        return Expr("other", *span)

    def _call(self, node: ast.Call, start: int, end: int) -> Expr:
        words = [word.arg or "**" for word in node.keywords]
        starred = ["*" if isinstance(item, ast.Starred) else "" for item in node.args]
        plain = [item.value if isinstance(item, ast.Starred) else item for item in node.args]
        items = (node.func, *plain, *(word.value for word in node.keywords))
        return Expr("call", start, end, "", None, tuple(map(self.read, items)), (*starred, *words))

    def _offset(self, line: int | None, column: int | None) -> int:
        if line is None or column is None or line >= len(self.lines):
            return self.start
        start, end = self.lines[line - 1], self.lines[line]
        before = self.text[start:end].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")
        return self.start + start + len(before)


def whole_number(node: ast.expr | None) -> int | None | Literal[""]:
    """The number that an end of a slice is, None without one; an empty string for anything else."""
    if node is None:
        return None
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign < 0 else node
    return sign * inner.value if isinstance(inner, ast.Constant) and type(inner.value) is int else ""


def dotted(node: ast.expr) -> str:
    """The dotted name that a node is; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""

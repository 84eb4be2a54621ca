"""Parts of expressions that the facts of a module leave out: the holes of f-strings, the branches of ``a if c else b``."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

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


def expression(text: str, start: int, node: ast.expr) -> Expr:
    """A node of the tree that :func:`parse` made of ``text`` as a fact; ``start`` is where the text begins in its file."""
    return _Reader(text, start).read(node)


_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Is: "is", ast.IsNot: "is-not", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


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
        return self._compound(node, span)

    def _compound(self, node: ast.expr, span: tuple[int, int]) -> Expr:
        match node:
            case ast.Call():
                return self._call(node, span)
            case ast.Attribute():
                return Expr("attribute", *span, node.attr, None, (self.read(node.value),))
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                word = "not" if isinstance(node.op, ast.Not) else "-"
                return Expr("unary", *span, word, None, (self.read(node.operand),))
            case ast.BinOp(op=ast.Add()):
                return Expr("binary", *span, "+", None, (self.read(node.left), self.read(node.right)))
            case ast.Compare(ops=[op]):
                word = _COMPARISONS.get(type(op), "?")
                return Expr("compare", *span, word, None, (self.read(node.left), self.read(node.comparators[0])))
            case ast.IfExp():
                return Expr("ifexp", *span, "", None, tuple(map(self.read, (node.test, node.body, node.orelse))))
            case ast.Subscript():
                return Expr("subscript", *span, "", None, (self.read(node.value), self._index(node.slice, span)))
            case ast.JoinedStr():
                return Expr("fstring", *span, "", None, tuple(self._part(item, span) for item in node.values))
        return Expr("other", *span)

    def _index(self, node: ast.expr, span: tuple[int, int]) -> Expr:
        if not isinstance(node, ast.Slice):
            return self.read(node)
        ends = [
            self.read(item) if item is not None else Expr("absent", *span)
            for item in (node.lower, node.upper, node.step)
        ]
        return Expr("slice", *span, "", None, tuple(ends))

    def _part(self, node: ast.expr, span: tuple[int, int]) -> Expr:
        if not isinstance(node, ast.FormattedValue):
            return Expr("const", *span, "", str(node.value) if isinstance(node, ast.Constant) else "")
        spec = [self.read(node.format_spec)] if node.format_spec is not None else []
        text = chr(node.conversion) if node.conversion > 0 else ""
        return Expr("field", *span, text, None, (self.read(node.value), *spec))

    def _call(self, node: ast.Call, span: tuple[int, int]) -> Expr:
        words = [word.arg or "**" for word in node.keywords]
        starred = ["*" if isinstance(item, ast.Starred) else "" for item in node.args]
        plain = [item.value if isinstance(item, ast.Starred) else item for item in node.args]
        items = (node.func, *plain, *(word.value for word in node.keywords))
        return Expr("call", *span, "", None, tuple(map(self.read, items)), (*starred, *words))

    def _offset(self, line: int | None, column: int | None) -> int:
        if line is None or column is None or line >= len(self.lines):
            return self.start
        start, end = self.lines[line - 1], self.lines[line]
        before = self.text[start:end].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")
        return self.start + start + len(before)


def dotted(node: ast.expr) -> str:
    """The dotted name that a node is; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""

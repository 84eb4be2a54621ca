"""Shape declarations with places: ``"[B, NC + 1, 2 * N]"`` into dimensions and their symbols.

Every form that people write is recognised, the legacy ``same_as(x)``, ``...``, ``*`` and ``|`` too; which of
them a schema may use is a rule's business. A YAML list of dimensions is read item by item with
:func:`parse_dimension`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, Reference, parse_expression
from opschema_cli.source.text import Span

ShapeProblemKind: TypeAlias = Literal[
    "alternatives", "ellipsis", "wildcard", "empty", "syntax", "expression", "brackets"
]
_NoSize: TypeAlias = Literal["ellipsis", "wildcard", "unreadable"]

_ALIAS = re.compile(r"\s*same_as\s*\(\s*([^\W\d]\w*)\s*\)\s*")
_WILDCARD = re.compile(r"[*?:]|_|\*{1,2}\s*[^\W\d]\w*")
_OPEN, _CLOSE = "([{", ")]}"
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow)
_ALTERNATIVES = "`|` declares alternatives; a shape is one"


class ShapeProblem(msgspec.Struct, frozen=True):
    """A part of a declaration that is not a plain dimension, with its place in the text."""

    kind: ShapeProblemKind
    span: Span
    message: str


class Dimension(msgspec.Struct, frozen=True):
    """One dimension; ``expression`` is the size, or None for ``...``, a wildcard and unreadable text."""

    text: str
    span: Span
    kind: Literal["size", "ellipsis", "wildcard", "unreadable"]
    expression: Expression | None = None
    problem: ShapeProblem | None = None

    def symbols(self) -> Iterator[Reference]:
        """The names in the dimension, with their places in the entire declaration."""
        if self.expression is not None:
            for name, (start, end) in self.expression.names():
                yield Reference(name, Span(self.span.start + start, self.span.start + end))


class ShapeDeclaration(msgspec.Struct, frozen=True, dict=True):
    """A declared shape: its dimensions, or ``alias``, the tensor whose shape it repeats (``same_as(x)``).

    ``dimensions`` is None for an alias and for text whose dimensions cannot be distinguished.
    """

    text: str
    dimensions: tuple[Dimension, ...] | None
    alias: Reference | None = None
    problems: tuple[ShapeProblem, ...] = ()

    @property
    def rank(self) -> int | None:
        """Number of declared dimensions; None for an alias, ``...``, ``*dims`` or ``|``."""
        if self.dimensions is None or any(
            item.kind == "ellipsis" or item.text.startswith("*") for item in self.dimensions
        ):
            return None
        return len(self.dimensions)

    @cached_property
    def symbols(self) -> tuple[Reference, ...]:
        """Every use of a name as a size, in the order of the text."""
        return tuple(symbol for item in self.dimensions or () for symbol in item.symbols())

    def as_rule(self, tensor: str) -> Expression | None:
        """Return the equivalent shape rule (``x.shape == (M, K,)``), or None if there is none."""
        sizes = [item.expression for item in self.dimensions or ()]
        if self.alias is not None:
            shape = f"{self.alias.name}.shape"
        elif self.dimensions is None or None in sizes:
            return None
        else:
            shape = "({})".format("".join(f"{size.snippet}, " for size in sizes if size is not None).rstrip())
        try:
            return parse_expression(f"{tensor}.shape == {shape}") if tensor.isidentifier() else None
        except ExpressionSyntaxError:  # a keyword as a name, or dimensions that are too long together
            return None


def parse_dimension(text: str, start: int = 0) -> Dimension:
    """One dimension, from a declaration in which it starts at character ``start``."""
    body = text.strip()
    start += len(text) - len(text.lstrip()) if body else 0
    span = Span(start, start + len(body))
    if not body:
        return _no_size(body, span, "unreadable", "empty", "a dimension is missing")
    if body == "...":
        return _no_size(body, span, "ellipsis", "ellipsis", "`...` leaves the rank open")
    if _WILDCARD.fullmatch(body):
        return _no_size(body, span, "wildcard", "wildcard", f"`{body}` says nothing about the size")
    try:
        expression = parse_expression(body)
    except ExpressionSyntaxError as error:
        return _no_size(body, span, "unreadable", "syntax", f"`{body}` is not a size: {error.reason}")
    return Dimension(body, span, "size", expression, _expression_problem(expression, start))


def _no_size(text: str, span: Span, kind: _NoSize, problem: ShapeProblemKind, message: str) -> Dimension:
    return Dimension(text, span, kind, None, ShapeProblem(problem, span, message))


def _expression_problem(expression: Expression, start: int) -> ShapeProblem | None:
    """Return the first part of an expression that is not arithmetic on names and integers."""
    for node in ast.walk(expression.tree):
        if isinstance(node, ast.expr) and not _is_arithmetic(node):
            found = expression.part(node)
            span = Span(start + found.span.start, start + found.span.end)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                return ShapeProblem("alternatives", span, _ALTERNATIVES)
            message = f"`{found.snippet}` is not a name, an integer or arithmetic on them"
            return ShapeProblem("expression", span, message)
    return None


def _is_arithmetic(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _OPERATORS)
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    return isinstance(node, (ast.Name, ast.UnaryOp))


@lru_cache(maxsize=2048)
def parse_shape(text: str) -> ShapeDeclaration:
    """Parse a shape declaration. Errors are listed in ``problems`` and never raised."""
    alias = _ALIAS.fullmatch(text)
    if alias is not None:
        return ShapeDeclaration(text, None, Reference(alias[1], Span(*alias.span(1))))
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    closing = _closing(text, start) if text[start : start + 1] == "[" else None
    if closing is None:
        message = "a shape is written `[M, K]`"
        return ShapeDeclaration(text, None, None, (ShapeProblem("brackets", Span(start, max(start, end)), message),))
    if closing + 1 != end:
        return ShapeDeclaration(text, None, None, (_after_bracket(text, closing + 1, end),))
    dimensions = tuple(parse_dimension(text[a:b], a) for a, b in _split(text, start + 1, closing))
    return ShapeDeclaration(
        text, dimensions, None, tuple(item.problem for item in dimensions if item.problem is not None)
    )


def _after_bracket(text: str, start: int, end: int) -> ShapeProblem:
    bar = text.find("|", start)
    if bar >= 0:
        return ShapeProblem("alternatives", Span(bar, bar + 1), _ALTERNATIVES)
    return ShapeProblem("syntax", Span(start, end), "text follows the closing bracket")


def _closing(text: str, start: int) -> int | None:
    """The bracket that closes the one at ``start``."""
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] in _OPEN) - (text[index] in _CLOSE)
        if depth == 0:
            return index
    return None


def _split(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Return the pieces between top-level commas. A trailing comma is allowed."""
    pieces = []
    depth, begin = 0, start
    for index in range(start, end):
        depth += (text[index] in _OPEN) - (text[index] in _CLOSE)
        if text[index] == "," and depth == 0:
            pieces.append((begin, index))
            begin = index + 1
    if text[begin:end].strip():
        pieces.append((begin, end))
    return pieces

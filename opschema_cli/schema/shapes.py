"""Shape declarations with places: ``"[B, NC + 1, 2 * N]"`` into dimensions and their symbols.

Every form that people write is recognised, the legacy ``same_as(x)``, ``...``, ``*`` and ``|`` too; which of
them a schema may use is a rule's business. A YAML list of dimensions is read item by item with
:func:`parse_dimension`.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, Reference, parse_expression
from opschema_cli.source.text import Span

ProblemKind: TypeAlias = Literal[
    "alternatives", "ellipsis", "wildcard", "empty", "syntax", "expression", "brackets"
]

_ALIAS = re.compile(r"\s*(\w+)\s*\(\s*([^\W\d]\w*)\s*\)\s*")
_ALTERNATIVE = re.compile(r"\|")
_WILDCARD = re.compile(r"[*?:]|_|\*{1,2}\s*[^\W\d]\w*")
_OPEN, _CLOSE = "([{", ")]}"
_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


class ShapeProblem(NamedTuple):
    """What in a declaration is not a plain dimension, and where in its text."""

    kind: ProblemKind
    span: Span
    message: str


class Dimension(NamedTuple):
    """One dimension: ``expression`` is set for a size, None for ``...``, a wildcard and what cannot be read."""

    text: str
    span: Span
    kind: Literal["size", "ellipsis", "wildcard", "unreadable"]
    expression: Expression | None = None
    problem: ShapeProblem | None = None

    def symbols(self) -> Iterator[Reference]:
        """The names in the dimension, with their places in the whole declaration."""
        if self.expression is not None:
            for name, (start, end) in self.expression.names():
                yield Reference(name, Span(self.span.start + start, self.span.start + end))


class ShapeDeclaration(NamedTuple):
    """A declared shape: its dimensions, or ``alias``, the tensor whose shape it repeats (``same_as(x)``).

    ``dimensions`` is None for an alias and for text whose dimensions cannot be told apart.
    """

    text: str
    dimensions: tuple[Dimension, ...] | None
    alias: Reference | None = None
    problems: tuple[ShapeProblem, ...] = ()

    @property
    def rank(self) -> int | None:
        """How many dimensions it declares; None for an alias, ``...``, ``*dims`` or ``|``."""
        if self.dimensions is None or any(
            item.kind == "ellipsis" or item.text.startswith("*") for item in self.dimensions
        ):
            return None
        return len(self.dimensions)

    def symbols(self) -> tuple[Reference, ...]:
        """Every use of a name as a size, in the order of the text."""
        return tuple(symbol for item in self.dimensions or () for symbol in item.symbols())

    def as_rule(self, tensor: str) -> Expression | None:
        """The shape rule that says the same (``x.shape == (M, K,)``); None where no rule can."""
        if not tensor.isidentifier() or keyword.iskeyword(tensor):
            return None
        if self.alias is not None:
            return parse_expression(f"{tensor}.shape == {self.alias.name}.shape")
        if self.dimensions is None or any(item.expression is None for item in self.dimensions):
            return None
        sizes = "".join(f"{item.text}, " for item in self.dimensions).rstrip()
        try:
            return parse_expression(f"{tensor}.shape == ({sizes})")
        except ExpressionSyntaxError:  # the dimensions can be read one by one, but are too long together
            return None


def parse_dimension(text: str, start: int = 0) -> Dimension:
    """One dimension, from a declaration in which it starts at character ``start``."""
    body = text.strip()
    start += len(text) - len(text.lstrip())
    span = Span(start, start + len(body))
    if not body:
        return _odd(body, span, "unreadable", "empty", "a dimension is missing")
    if body == "...":
        return _odd(body, span, "ellipsis", "ellipsis", "`...` leaves the rank open")
    if _WILDCARD.fullmatch(body):
        return _odd(body, span, "wildcard", "wildcard", f"`{body}` says nothing about the size")
    try:
        expression = parse_expression(body)
    except ExpressionSyntaxError as error:
        place = Span(start + error.offset, max(start + error.offset, span.end))
        return _odd(body, place, "unreadable", "syntax", f"`{body}` is not a size: {error.reason}")._replace(
            span=span
        )
    stranger = _not_arithmetic(expression.tree)
    problem = None
    if stranger is not None:
        first, end = expression.span_of(stranger)
        snippet = body[first:end]
        place = Span(start + first, start + end)
        problem = ShapeProblem(
            "expression", place, f"`{snippet}` is not a name, an integer or arithmetic on them"
        )
    return Dimension(body, span, "size", expression, problem)


def _odd(
    text: str,
    span: Span,
    kind: Literal["ellipsis", "wildcard", "unreadable"],
    problem: ProblemKind,
    message: str,
) -> Dimension:
    return Dimension(text, span, kind, None, ShapeProblem(problem, span, message))


def _not_arithmetic(tree: ast.expr) -> ast.expr | None:
    """The first node that is not arithmetic on names and integers."""
    for node in ast.walk(tree):
        odd_constant = isinstance(node, ast.Constant) and type(node.value) is not int
        if isinstance(node, ast.expr) and (odd_constant or not isinstance(node, _ARITHMETIC)):
            return node
    return None


@lru_cache(maxsize=2048)
def parse_shape(text: str) -> ShapeDeclaration:
    """Read a shape declaration; what is wrong with it is in ``problems``, never raised."""
    alias = _ALIAS.fullmatch(text)
    if alias is not None and alias[1] == "same_as":
        return ShapeDeclaration(text, None, Reference(alias[2], Span(*alias.span(2))))
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    closing = _closing(text, start) if text[start : start + 1] == "[" else None
    if closing is None:
        message = "a shape is written `[M, K]`"
        return ShapeDeclaration(
            text, None, None, (ShapeProblem("brackets", Span(start, max(start, end)), message),)
        )
    if closing + 1 != end:
        return ShapeDeclaration(text, None, None, (_after_bracket(text, closing + 1, end),))
    dimensions = tuple(parse_dimension(text[a:b], a) for a, b in _split(text, start + 1, closing))
    return ShapeDeclaration(
        text, dimensions, None, tuple(item.problem for item in dimensions if item.problem is not None)
    )


def _after_bracket(text: str, start: int, end: int) -> ShapeProblem:
    bar = _ALTERNATIVE.search(text, start)
    if bar is not None:
        return ShapeProblem("alternatives", Span(*bar.span()), "`|` declares alternatives; a shape is one")
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
    """The pieces between top-level commas; one comma behind the last piece is allowed."""
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

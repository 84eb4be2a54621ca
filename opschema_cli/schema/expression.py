"""Expressions as text with places: shape rules, dimensions and roofline formulas, parsed once.

Nothing is computed here; :mod:`opschema_cli.schema.evaluate` does that.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from opschema_cli.source.text import Span

MAX_LENGTH = 10_000
"""Maximum length of a parsed expression, in characters; the longest in TileOps has 330."""

MAX_DEPTH = 100
"""Maximum depth of a parsed syntax tree; the deepest in TileOps has 14 levels."""

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\r\n\f"
_TOKEN = re.compile(r"\w+|[^\w\s]")
"""The text of an expression has at least one of these for each level of its tree, except for the last two levels."""

_Scoped: TypeAlias = list[tuple[ast.AST, frozenset[str]]]
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Name: (),
    ast.Constant: (),
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.BinOp: ("left", "right"),
    ast.Compare: ("left", "comparators"),
    ast.Call: ("func", "args", "keywords"),
}
"""The fields of the commonest nodes that hold expressions; of other nodes any field may."""

_STRUCTURE = (ast.expr, ast.comprehension, ast.keyword, ast.arguments, ast.arg)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_SCOPES = (*_COMPREHENSIONS, ast.Lambda)


class ExpressionSyntaxError(ValueError):
    """The text is not an expression that opschema reads; ``offset`` counts its characters from 0."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return self.reason


class Reference(NamedTuple):
    """A name as an expression uses it, and where; ``name`` is normalised as Python does (NFKC)."""

    name: str
    span: Span


class Expression:
    """One parsed expression, or a part of one. Two are equal only if they are the same object.

    ``text`` is the entire text that was parsed, for a part too: every span counts its characters.
    """

    def __init__(self, text: str, tree: ast.expr, columns: Columns) -> None:
        self.text = text
        self.tree = tree
        self._columns = columns
        self._parts: dict[ast.expr, Expression] = {}

    def __repr__(self) -> str:
        return f"Expression({self.snippet!r})"

    @property
    def span(self) -> Span:
        """The span of the expression in ``text``, without the parentheses around it."""
        return self.span_of(self.tree)

    @property
    def snippet(self) -> str:
        """The source text of the expression."""
        start, end = self.span
        return self.text[start:end]

    def span_of(self, node: ast.expr) -> Span:
        """The characters of ``node``, a node of this tree."""
        columns = self._columns
        return Span(self.start_of(node), columns.offset(node.end_lineno or node.lineno, node.end_col_offset or 0))

    def start_of(self, node: ast.expr) -> int:
        """The first character of ``node``, a node of this tree."""
        return self._columns.offset(node.lineno, node.col_offset)

    def part(self, node: ast.expr) -> Expression:
        """The expression that starts at ``node`` of this tree; the same object each time."""
        if node is self.tree:
            return self
        found = self._parts.get(node)
        if found is None:
            found = self._parts[node] = Expression(self.text, node, self._columns)
        return found

    def rewritten(self, tree: ast.expr) -> Expression:
        """Return the same text with another tree, made from a copy of this one's nodes."""
        return Expression(self.text, tree, self._columns)

    def names(self) -> tuple[Reference, ...]:
        """Names read from outside, in the order of the text: no comprehension targets, no callees."""
        return self._references[0]

    def calls(self) -> tuple[Reference, ...]:
        """Names that are called (``len`` in ``len(x)``), in the order of the text."""
        return self._references[1]

    @cached_property
    def nodes(self) -> tuple[ast.expr, ...]:
        """All expressions in it, itself first, each before its own parts."""
        found: list[ast.AST] = [self.tree]
        for node in found:  # which grows meanwhile
            for field in _PARTS.get(node.__class__, node._fields):
                value = getattr(node, field, None)
                if value.__class__ is list:
                    found += [item for item in value if isinstance(item, _STRUCTURE)]
                elif isinstance(value, _STRUCTURE):
                    found.append(value)
        return tuple(node for node in found if isinstance(node, ast.expr))

    @cached_property
    def _references(self) -> tuple[tuple[Reference, ...], tuple[Reference, ...]]:
        names: list[Reference] = []
        calls: list[Reference] = []
        for node, called in _free_names(self):
            (calls if called else names).append(Reference(node.id, self.span_of(node)))
        names.sort(key=itemgetter(1))
        calls.sort(key=itemgetter(1))
        return tuple(names), tuple(calls)


class Columns:
    """Turns ``ast``'s lines and UTF-8 columns into characters of the text."""

    def __init__(self, text: str, start: int) -> None:
        starts = [start, *(match.end() for match in _NEWLINE.finditer(text, start))]
        ends = [*starts[1:], len(text)]
        lines = [(begin, text[begin:end]) for begin, end in zip(starts, ends, strict=True)]
        self._end = len(text)
        self._lines = [(begin, None if line.isascii() else line) for begin, line in lines]

    def offset(self, line: int, column: int) -> int:
        """The character at UTF-8 byte ``column`` (from 0) of ``line`` (from 1).

        Clamped to the text: before Python 3.12 the nodes inside an f-string have places of their own.
        """
        start, wide = self._lines[line - 1 if line <= len(self._lines) else -1]
        if wide is not None:
            column = len(wide.encode()[:column].decode(errors="ignore"))
        place = start + column
        return place if place < self._end else self._end

    def character(self, line: int | None, character: int | None) -> int:
        """The place of a :class:`SyntaxError`, whose ``offset`` counts characters from 1."""
        if not line or line > len(self._lines):
            return self._lines[0][0]
        return min(self._lines[line - 1][0] + max((character or 1) - 1, 0), self._end)


@lru_cache(maxsize=2048)
def parse_expression(text: str) -> Expression:
    """Parse one Python expression; equal texts give the same object.

    Blanks around it are allowed, which :func:`ast.parse` refuses in front.

    Raises:
        ExpressionSyntaxError: it is not one expression, holds NUL, is longer than :data:`MAX_LENGTH` or
            nests deeper than :data:`MAX_DEPTH`.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionSyntaxError(f"it has more than {MAX_LENGTH:,} characters", MAX_LENGTH)
    if "\0" in text:
        raise ExpressionSyntaxError("it holds a NUL character", text.index("\0"))
    body = text.lstrip(_BLANK)
    start = len(text) - len(body)
    if not body:
        raise ExpressionSyntaxError("it is empty", start)
    columns = Columns(text, start)
    tree = _parse(body, columns)
    if len(body) > MAX_DEPTH and len(_TOKEN.findall(body)) >= MAX_DEPTH - 2:
        _refuse_depth(tree, columns)
    return Expression(text, tree, columns)


def _parse(body: str, columns: Columns) -> ast.expr:
    start = columns.character(None, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(body, mode="eval").body
    except SyntaxError as error:
        place = columns.character(error.lineno, error.offset)
        raise ExpressionSyntaxError(error.msg, place) from None
    except UnicodeEncodeError as error:
        raise ExpressionSyntaxError("it holds half a surrogate pair", start + error.start) from None
    except ValueError as error:
        raise ExpressionSyntaxError(str(error), start) from None
    except (MemoryError, RecursionError):
        raise ExpressionSyntaxError("it nests too deeply", start) from None


def _refuse_depth(tree: ast.expr, columns: Columns) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    place = columns.offset(tree.lineno, tree.col_offset)
    raise ExpressionSyntaxError(f"it nests deeper than {MAX_DEPTH} levels", place)


def _free_names(expression: Expression) -> Iterator[tuple[ast.Name, bool]]:
    """Yield each free name and whether it is called. Names bound by a walrus are not free."""
    walrus = {node.target.id for node in expression.nodes if isinstance(node, ast.NamedExpr)}
    return ((node, called) for node, called in _loaded_names(expression) if node.id not in walrus)


def _loaded_names(expression: Expression) -> Iterator[tuple[ast.Name, bool]]:
    kinds = {node.__class__ for node in expression.nodes}
    if not kinds.isdisjoint(_SCOPES):
        yield from _unbound_names(expression.tree, frozenset())
        return
    called = {id(node.func) for node in expression.nodes if isinstance(node, ast.Call)} if ast.Call in kinds else ()
    for node in expression.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node, id(node) in called


def _unbound_names(node: ast.AST, bound: frozenset[str]) -> Iterator[tuple[ast.Name, bool]]:
    """Each free name with whether it is called; ``bound`` are the names that enclosing scopes bind."""
    if isinstance(node, ast.Name):
        if node.id not in bound and isinstance(node.ctx, ast.Load):
            yield node, False
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield node.func, True
        children: _Scoped = [(child, bound) for child in (*node.args, *node.keywords)]
    elif isinstance(node, _COMPREHENSIONS):
        children = _comprehension_parts(node, bound)
    elif isinstance(node, ast.Lambda):
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        children = [(node.args, bound), (node.body, bound | own)]
    else:
        children = [(child, bound) for child in ast.iter_child_nodes(node)]
    for child, scope in children:
        yield from _unbound_names(child, scope)


def _comprehension_parts(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, bound: frozenset[str]
) -> _Scoped:
    """A comprehension's parts with their scopes: its first iterable belongs to the scope around it."""
    targets = chain.from_iterable(ast.walk(loop.target) for loop in node.generators)
    inner = bound | {name.id for name in targets if isinstance(name, ast.Name)}
    elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    parts: _Scoped = [(element, inner) for element in elements]
    for index, loop in enumerate(node.generators):
        parts.append((loop.iter, inner if index else bound))
        parts += [(condition, inner) for condition in loop.ifs]
    return parts

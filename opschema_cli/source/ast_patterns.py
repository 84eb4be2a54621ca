"""Patterns of ``case`` clauses in CPython's syntax trees: the names that they bind and the expressions that they read, with places.

CPython places neither a ``case`` nor a name behind ``as`` or ``**``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from opschema_cli.source.ast_spans import Places
from opschema_cli.source.python import Expr

_TO_COLON = re.compile(r"(?:[\s),]|\\[\r\n]|#[^\r\n]*)*:")


class PatternReader:
    """Reads one pattern; ``expr`` converts an expression to facts, and ``word`` returns the span of a name at a place."""

    def __init__(
        self, places: Places, expr: Callable[[ast.expr], Expr], word: Callable[[str, int], tuple[int, int]]
    ) -> None:
        self.places, self.expr, self.word = places, expr, word
        self.bound: list[Expr] = []
        self.read: list[Expr] = []

    def pattern(self, node: ast.pattern) -> None:
        """Record what a pattern binds and reads, in source order."""
        match node:
            case ast.MatchValue() | ast.MatchSingleton():
                value = (
                    node.value
                    if isinstance(node, ast.MatchValue)
                    else ast.copy_location(ast.Constant(node.value), node)
                )
                self.read.append(self.expr(value))
            case ast.MatchSequence() | ast.MatchOr():
                self._all(node.patterns)
            case ast.MatchStar():
                self._bind_last(node, node.name)
            case ast.MatchAs():
                self._all([node.pattern] if node.pattern is not None else [])
                self._bind_last(node, node.name)
            case ast.MatchClass():
                self.read.append(self.expr(node.cls))
                self._all([*node.patterns, *node.kwd_patterns])
            case ast.MatchMapping():
                self._mapping(node)

    def _all(self, nodes: Sequence[ast.pattern]) -> None:
        for node in nodes:
            self.pattern(node)

    def _mapping(self, node: ast.MatchMapping) -> None:
        for key, value in zip(node.keys, node.patterns, strict=True):
            self.read.append(self.expr(key))
            self.pattern(value)
        if node.rest is not None:
            end = self.places.end(node)
            before = self.places.end(node.patterns[-1]) if node.patterns else self.places.start(node)
            self._bind(node.rest, self.places.after_space(self.places.last_stars(before, end) + 2))

    def _bind_last(self, node: ast.pattern, name: str | None) -> None:
        """Record the name at the end of a pattern."""
        if name is not None:
            self._bind(name, self.places.end(node) - len(name))

    def _bind(self, name: str, start: int) -> None:
        self.bound.append(Expr("name", *self.word(name, start), name))


def first_case(places: Places, node: ast.Match) -> int | None:
    """Return the start of the first ``case`` of a statement; None if it is not found."""
    colon = _TO_COLON.match(places.text, places.end(node.subject))
    return places.after_space(colon.end()) if colon is not None else None


def next_case(places: Places, before: ast.match_case) -> int:
    """Return the start of the next ``case``."""
    end = places.after_space(places.end(before.body[-1]))
    return places.after_space(end + 1) if places.text.startswith(";", end) else end

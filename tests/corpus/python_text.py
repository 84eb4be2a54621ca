"""A Python text with CPython's tree, to change the code of its nodes."""

from __future__ import annotations

import ast

from tests.corpus.seeded import Change, replaced


class PythonText:
    """A parsed file.

    Raises:
        SyntaxError: it does not parse.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """The place of a position of CPython, which counts bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The range of a node."""
        return (
            self.at(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.at(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def edit(self, start: int, end: int, new: str) -> Change:
        """A change of a range."""
        return replaced(self.path, self.text, start, end, new)

    def replace(self, node: ast.AST, new: str) -> Change:
        """A change of a node."""
        return self.edit(*self.span(node), new)

    def exchange(self, one: ast.AST, other: ast.AST) -> Change:
        """A change of places of two nodes, the second of which is written behind the first."""
        (start, _), (_, end) = self.span(one), self.span(other)
        return self.edit(start, end, self.source(other) + self.between(one, other) + self.source(one))

    def between(self, one: ast.AST, other: ast.AST) -> str:
        """The text between two nodes."""
        return self.text[self.span(one)[1] : self.span(other)[0]]

    def indent(self, node: ast.AST) -> str | None:
        """The white space before a node that begins a line; None of another node."""
        start = self.span(node)[0]
        before = self.text[self.text.rindex("\n", 0, start) + 1 : start]
        return before if not before.strip() else None

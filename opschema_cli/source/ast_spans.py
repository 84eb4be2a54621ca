"""Places of the nodes in CPython's syntax trees, converted to those of libcst.

CPython counts lines and bytes of UTF-8; opschema counts characters. A tuple's or generator's own brackets are not part of
it for libcst, but are for CPython; a ``def``'s name and the ``**`` of a display have no place of their own there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import accumulate
from typing import TypeAlias

from opschema_cli.source.text import Span

Placed: TypeAlias = "ast.expr | ast.stmt | ast.arg | ast.alias | ast.excepthandler | ast.pattern"

_NEWLINE = re.compile(r"\r\n|\r|\n")
_TO_CODE = re.compile(r"(?:\s|\\[\r\n]|#[^\r\n]*)*")
_MARKS = re.compile(r"#[^\r\n]*|[(),]|\*\*")
_BEFORE_NAME = re.compile(r"(?:async(?:\s|\\[\r\n])+)?(?:def|class)(?:\s|\\[\r\n])+")


def _line_ends(text: str) -> Iterable[int]:
    """Return the places after all newlines of a text."""
    if "\r" in text:
        return [match.end() for match in _NEWLINE.finditer(text)]
    return accumulate([len(line) + 1 for line in text.split("\n")[:-1]])


class Places:
    """Places in a text that CPython parses."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The starts of lines, which count from 1; a place may be one line behind the last.
        self.starts = [0, 0, *_line_ends(text), len(text)]
        # The lines on which bytes are not characters.
        lines = range(1, len(self.starts) - 1) if not text.isascii() else ()
        self.wide = frozenset([line for line in lines if not self._line(line).isascii()])

    def _line(self, line: int) -> str:
        return self.text[self.starts[line] : self.starts[line + 1]]

    def _offset(self, line: int, column: int) -> int:
        """Return the character at a byte of a line."""
        if line in self.wide:
            column = len(self._line(line).encode()[:column].decode(errors="ignore"))
        return self.starts[line] + column

    def bounds(self, node: Placed) -> tuple[int, int]:
        """Return the span of a node, according to CPython."""
        starts, wide = self.starts, self.wide
        if wide and (node.lineno in wide or node.end_lineno in wide):
            return self.start(node), self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[arg-type]
        return starts[node.lineno] + node.col_offset, starts[node.end_lineno] + node.end_col_offset  # type: ignore[index, operator]

    def start(self, node: Placed) -> int:
        """Return the start of a node, according to CPython."""
        line = node.lineno
        return self._offset(line, node.col_offset) if line in self.wide else self.starts[line] + node.col_offset

    def end(self, node: Placed) -> int:
        """Return the end of a node, according to CPython."""
        return self.bounds(node)[1]

    def outer(self, node: Placed) -> Span:
        """Return the span of a node, according to CPython."""
        return Span(*self.bounds(node))

    def span(self, node: Placed) -> Span:
        """Return the span of a node, according to libcst."""
        if isinstance(node, ast.Tuple) and self.bracketed(node):
            return self._inside(node, node.elts)
        if isinstance(node, ast.GeneratorExp):
            last = node.generators[-1]
            return self._inside(node, [node.elt, last.ifs[-1] if last.ifs else last.iter])
        return self.outer(node)

    def _inside(self, node: ast.expr, parts: list[ast.expr]) -> Span:
        start, end = self.outer(node)
        first = self.after_space(start + 1)
        if not parts:
            return Span(first, first)
        last = self.end(parts[-1])
        for mark in _MARKS.finditer(self.text, last, end - 1):
            if not mark.group().startswith("#"):
                last = mark.end()
        return Span(first, last)

    def after_space(self, offset: int) -> int:
        """The start of the next token."""
        found = _TO_CODE.match(self.text, offset)
        return found.end() if found is not None else offset

    def bracketed(self, node: ast.Tuple) -> bool:
        """Whether a tuple has its own brackets: ``(a, b)``, not ``(a), b``."""
        start, end = self.bounds(node)
        if self.text[start] != "(":
            return False
        if not node.elts:
            return True
        first = self.outer(node.elts[0])
        opened = self._brackets(start, first.start)
        behind = self.start(node.elts[1]) if len(node.elts) > 1 else end
        for mark in _MARKS.finditer(self.text, first.end, behind):
            if mark.group() == ",":
                break
            opened -= mark.group() == ")"
        return opened > 0

    def _brackets(self, start: int, end: int) -> int:
        """Return the number of opening brackets in a stretch that only contains these, white space and comments."""
        return sum(mark.group() == "(" for mark in _MARKS.finditer(self.text, start, end))

    def unpacked(self, before: int, value: ast.expr) -> Span:
        """Return the span of ``**value`` in a dict display, including brackets around the value; the text before it ends at
        ``before``.
        """
        stars = self.last_stars(before, self.start(value))
        return Span(stars, self.closing(stars, value))

    def last_stars(self, start: int, end: int) -> int:
        """Return the last ``**`` in a stretch that only contains punctuation, names, white space and comments."""
        marks = [mark.start() for mark in _MARKS.finditer(self.text, start, end) if mark.group() == "**"]
        return marks[-1] if marks else end

    def closing(self, before: int, value: ast.expr) -> int:
        """Return the end of an expression, including its brackets; the text before it ends at ``before``."""
        start, end = self.bounds(value)
        if self.text.find("(", before, start) < 0:
            return end
        for _ in range(self._brackets(before, start)):
            end = self.text.index(")", self.after_space(end)) + 1
        return end

    def name(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Span:
        """Return the name of a definition."""
        found = _BEFORE_NAME.match(self.text, self.start(node))
        start = found.end() if found is not None else 0
        return Span(start, start + len(node.name))

    def dotted(self, start: int, name: str) -> Span:
        """Return the span of a dotted name that begins at ``start``, with anything between its parts."""
        end = start
        for part in name.split("."):
            end = self.after_space(end)
            end = self.after_space(end + 1) if self.text.startswith(".", end) else end
            end += len(part)
        return Span(start, end)

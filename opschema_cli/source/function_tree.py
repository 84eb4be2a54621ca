"""The whole syntax tree of one function, for what the facts of a module leave out: writes to items, comprehensions."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Place, Span

MAX_CHARACTERS = 100_000
"""Longest function that is read."""


class FunctionTree(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A function's tree; ``lines`` are its text's with the offset of each in the file."""

    body: Body
    node: ast.FunctionDef
    lines: tuple[tuple[int, str], ...]

    def place(self, node: ast.expr | ast.stmt) -> Place:
        """Where a node is written."""
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return self.body.at(Span(self._offset(node.lineno, node.col_offset), end))

    def _offset(self, line: int, column: int) -> int:
        start, text = self.lines[line - 1]
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))

    def walk(self) -> Iterator[ast.AST]:
        """The nodes of its body."""
        return iter(self.nodes)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the function's body, without functions and classes inside it; parents first, in the text's order."""
        return tuple(node for statement in self.node.body for node in own_nodes(statement))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without the functions and classes among them."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield found
            waiting += reversed(list(ast.iter_child_nodes(found)))


@lru_cache(maxsize=128)
def function_tree(body: Body) -> FunctionTree | None:
    """The tree of a ``def``; None for anything else, and for what is too long or does not parse."""
    if body.function is None or body.function.outer.end - body.function.outer.start > MAX_CHARACTERS:
        return None
    source = body.file.source.text
    start = source.rfind("\n", 0, body.function.outer.start) + 1
    text = source[start : body.function.outer.end]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse("if 1:\n" + text if text[:1].isspace() else "\n" + text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    first = module.body[0]
    node = first.body[0] if isinstance(first, ast.If) else first
    if not isinstance(node, ast.FunctionDef) or node.name != body.function.name:
        return None
    return FunctionTree(body, node, tuple(_lines(text, start)))


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """The lines as the parser counts them, the one put before them first."""
    yield start, ""
    for line in text.replace("\r\n", " \n").replace("\r", "\n").split("\n"):
        yield start, line
        start += len(line) + 1


def is_name(node: ast.AST | None, name: str) -> bool:
    """Whether a node is that name."""
    return isinstance(node, ast.Name) and node.id == name


def dotted(node: ast.expr) -> str:
    """The dotted name that a node is; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""

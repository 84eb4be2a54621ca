"""Places of the nodes of a libcst tree.

libcst's own position providers cost several times the parse, since they visit the tree; here one code generation, which
walks it anyway, notes where each node begins and ends. A test holds the places equal to libcst's.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left, bisect_right
from functools import cache
from types import TracebackType
from typing import TypeAlias, TypeGuard

import libcst as cst
from libcst._nodes.internal import CodegenState

Spans: TypeAlias = dict[int, tuple[int, int]]
"""Spans of the nodes of a tree, by their ``id``."""


class _PositionState(CodegenState):
    """Code generation that records each node's span, without white space around it, and the depth of nesting."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.spans: Spans = {}
        self.open: list[int] = []
        self.depth = 0

    def add_token(self, value: str) -> None:
        self.offset += len(value)

    def add_indent_tokens(self) -> None:
        self.offset += sum(map(len, self.indent_tokens))

    def pop_trailing_newline(self) -> None:
        """Do nothing: no node ends after the last line end."""

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.open.append(self.offset)

    def after_codegen(self, node: cst.CSTNode) -> None:
        if len(self.open) > self.depth:
            self.depth = len(self.open)
        start = self.open.pop()
        if id(node) not in self.spans:
            self.spans[id(node)] = (start, self.offset)

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> _Recorder:
        return _Recorder(self, node, start_node, end_node)


class _Recorder:
    __slots__ = ("end_node", "node", "start", "start_node", "state")

    def __init__(
        self, state: _PositionState, node: cst.CSTNode, first: cst.CSTNode | None, last: cst.CSTNode | None
    ) -> None:
        self.state, self.node, self.start_node, self.end_node = state, node, first, last
        self.start = 0

    def __enter__(self) -> None:
        self.start = self.state.offset

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return  # too deep: what is below was not placed
        spans = self.state.spans
        start = spans[id(self.start_node)][0] if self.start_node is not None else self.start
        end = spans[id(self.end_node)][1] if self.end_node is not None else self.state.offset
        spans[id(self.node)] = (start, end)


def positions(module: cst.Module, text: str) -> Spans:
    """Return the span in its text of every node of a tree.

    Raises:
        ValueError: the tree is not that of the text.
    """
    return placed(module, text)[0]


def placed(module: cst.Module, text: str) -> tuple[Spans, int]:
    """Return the spans of a tree's nodes in its text, and the depth of nesting.

    Raises:
        ValueError: the tree is not that of the text.
    """
    state = _PositionState(module)
    module._codegen(state)
    if _MAY_DROP.search(text):
        _shift(state.spans, _dropped(module.code, text))
    return state.spans, state.depth


_MAY_DROP = re.compile(r"\f|(?:\A|[\r\n])[ \t]*\\[\r\n]")
"""Text that libcst omits from a tree's code before a statement's first word: form feeds and continued empty lines."""


def _dropped(code: str, text: str) -> list[int]:
    """Return the offsets, in the code of its tree, of characters of a text that libcst omits."""
    found: list[int] = []
    at = 0
    for character in text:
        if at < len(code) and code[at] == character:
            at += 1
        elif character in "\f\\\r\n \t":
            found.append(at)
        else:
            break
    # It also leaves out a carriage return that ends the text.
    if at < len(code) or text[at + len(found) :].strip("\r\n"):
        raise ValueError("libcst's tree is not that of the text")
    return found


def _shift(spans: Spans, dropped: list[int]) -> None:
    if dropped:
        for node, (start, end) in spans.items():
            spans[node] = (start + bisect_right(dropped, start), end + bisect_left(dropped, end))


_SKIP = frozenset({
    "lpar", "rpar", "comma", "semicolon", "leading_lines", "lines_after_decorators", "header", "footer",
})  # fmt: skip


@cache
def _child_fields(node_type: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (item.name for item in dataclasses.fields(node_type) if item.type not in (str, "str"))
    return tuple(name for name in names if name not in _SKIP and "whitespace" not in name)


@cache
def _is_node_type(kind: type[object]) -> bool:
    return issubclass(kind, cst.CSTNode)


def is_node(value: object) -> TypeGuard[cst.CSTNode]:
    """Whether a value is a node; cached by type, because ``isinstance`` with libcst's abstract base class is slow."""
    return _is_node_type(type(value))  # type: ignore[arg-type]  # mypy: a type is not Hashable


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the direct children of a node, without white space and punctuation."""
    found: list[cst.CSTNode] = []
    for name in _child_fields(type(node)):
        value: object = getattr(node, name)
        if isinstance(value, (list, tuple)):
            found += value
        elif is_node(value):
            found.append(value)
    return found

"""Takes elements out of a list between commas: parameters, arguments, imported names, items of ``__all__``, fields of a dict."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import libcst as cst
import msgspec

from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, Span

WithComma: TypeAlias = (
    "cst.Arg | cst.Param | cst.ParamStar | cst.ParamSlash | cst.ImportAlias | cst.BaseElement | cst.BaseDictElement"
)


class _Element(msgspec.Struct, frozen=True):
    start: int
    end: int
    comma_end: int | None
    removed: bool

    @property
    def last(self) -> int:
        return self.end if self.comma_end is None else self.comma_end


def drop_elements(
    tree: PythonTree, elements: Sequence[WithComma], removed: Collection[int], *, singleton_comma: bool = False
) -> list[Edit]:
    """The edits that take out the elements at the indexes in ``removed``.

    One on lines of its own goes with them, its trailing comment and the comments right above it. Whether the list ends with
    a comma stays as it was, but with ``singleton_comma`` (a tuple) an only element keeps one.
    """
    items = [_element(tree, node, index in removed) for index, node in enumerate(elements)]
    if all(item.removed for item in items):
        return [Edit(_all(tree, Span(items[0].start, items[-1].last)), "")]
    keep_comma = singleton_comma and sum(not item.removed for item in items) == 1
    edits: list[Edit] = []
    at = 0
    for is_gone, run in groupby(items, key=lambda item: item.removed):
        first, at = at, at + len(list(run))
        if is_gone:
            edits += _run(tree, items, first, at, keep_comma=keep_comma)
    return edits


def element_span(tree: PythonTree, node: cst.CSTNode) -> Span:
    """An element with the parentheses of its value, without its comma."""
    start, end = tree.span(node)
    annotation = getattr(node, "annotation", None)
    parts = [getattr(node, name, None) for name in ("value", "default", "asname", "name")]
    for part in [*parts, getattr(annotation, "annotation", None)]:
        if isinstance(part, cst.CSTNode):
            outer = tree.outer(part)
            start, end = min(start, outer.start), max(end, outer.end)
    return Span(start, end)


def _element(tree: PythonTree, node: WithComma, removed: bool) -> _Element:
    start, end = element_span(tree, node)
    if isinstance(node, cst.ParamStar | cst.ParamSlash):
        end = start + 1
    comma = node.comma
    return _Element(start, end, tree.span(comma).end if isinstance(comma, cst.Comma) else None, removed)


def _all(tree: PythonTree, span: Span) -> Span:
    """Return the span with the whitespace around it if brackets enclose nothing else, and otherwise with its own comments."""
    start = len(tree.text[: span.start].rstrip())
    end = len(tree.text) - len(tree.text[span.end :].lstrip())
    if tree.text[start - 1 : start] in ("(", "[") and tree.text[end : end + 1] in (")", "]"):
        return Span(start, end)
    return Span(_top(tree, span.start, None), tree.line_end(span.end)) if _alone(tree, span, None) else span


def _run(tree: PythonTree, items: Sequence[_Element], first: int, after: int, *, keep_comma: bool) -> Iterator[Edit]:
    run = Span(items[first].start, items[after - 1].last)
    before = items[first - 1] if first else None
    following = items[after] if after < len(items) else None
    if _alone(tree, run, before):
        yield Edit(Span(_top(tree, run.start, before), tree.line_end(run.end)), "")
    elif following is not None and (before is None or tree.line_end(run.end) > following.start):
        yield Edit(Span(run.start, following.start), "")
        return
    elif before is not None:
        yield Edit(Span(before.last, run.end), "")
    if following is None and before is not None and items[after - 1].comma_end is None and not keep_comma:
        yield Edit(Span(before.end, before.last), "")


def _alone(tree: PythonTree, run: Span, before: _Element | None) -> bool:
    """Whether a run has its lines for itself, and they can go without joining those around them."""
    line, line_end = tree.line_start(run.start), tree.line_end(run.end)
    tail = tree.text[run.end : line_end].strip()
    if tree.text[line : run.start].strip() or tree.text[max(0, line - 3) : line].rstrip("\r\n").endswith("\\"):
        return False
    return (not tail or tail.startswith("#")) and (before is None or before.last <= line)


def _top(tree: PythonTree, start: int, before: _Element | None) -> int:
    """Start of the comments above an element, without the comment after the last element."""
    return tree.comments_above(start, tree.line_end(before.last) if before is not None else 0)

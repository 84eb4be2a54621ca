"""Removes arms with known tests from an ``if`` chain, and dedents the only remaining one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import libcst as cst

from opschema_cli.migrate.codemods.layout import delete_lines
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Edit, Span


class _Arm(NamedTuple):
    """One arm of a chain: from the comments above its keyword to where the next arm's begin."""

    node: cst.If | cst.Else
    start: int
    code: int
    end: int
    known: bool | None


def reduce_chain(rewrite: Rewrite, chain: cst.If, known: Mapping[int, bool]) -> None:
    """Remove the arms that never run from the ``if`` at the head of a chain.

    Args:
        rewrite: the round.
        chain: the ``if``, not one of its ``elif``.
        known: what the tests of arms are known to be, by the ``id`` of the ``If``.
    """
    arms = list(_arms(rewrite.tree, chain, known))
    left = [arm for arm in arms if arm.known is not False]
    always = next((index for index, arm in enumerate(left) if arm.known), None)
    left = left if always is None else left[: always + 1]
    if not left:
        rewrite.remove(chain)
    elif left[0].known:
        rewrite.unwrap(chain, left[0].node.body, _unwrapped(rewrite.tree, arms, left[0]))
    else:
        for edit in _shortened(rewrite.tree, arms, left):
            rewrite.replace(*edit)


def head_of_chain(tree: PythonTree, node: cst.If) -> cst.If:
    """Return the ``if`` that an ``elif`` belongs to."""
    above = tree.parent(node)
    while isinstance(above, cst.If) and above.orelse is node:
        node, above = above, tree.parent(above)
    return node


def _arms(tree: PythonTree, chain: cst.If, known: Mapping[int, bool]) -> Iterator[_Arm]:
    nodes: list[cst.If | cst.Else] = []
    node: cst.If | cst.Else | None = chain
    while node is not None:
        nodes.append(node)
        node = node.orelse if isinstance(node, cst.If) else None
    starts = [tree.line_start(tree.span(item).start) for item in nodes]
    tops = [
        _top(tree, item, start) if index else start
        for index, (item, start) in enumerate(zip(nodes, starts, strict=True))
    ]
    ends = [*tops[1:], _bottom(tree, nodes[-1])]
    for item, top, end in zip(nodes, tops, ends, strict=True):
        yield _Arm(item, top, tree.span(item).start, end, known.get(id(item)) if isinstance(item, cst.If) else True)


def _top(tree: PythonTree, node: cst.If | cst.Else, line: int) -> int:
    """Return the start of the comments above ``elif`` or ``else``."""
    comments = [item for item in node.leading_lines if item.comment is not None]
    return min([line, *(tree.line_start(tree.span(item).start) for item in comments)])


def _bottom(tree: PythonTree, node: cst.If | cst.Else) -> int:
    return max(tree.line_end(tree.span(node.body).end), _footer_end(tree, node.body))


def _footer_end(tree: PythonTree, suite: cst.BaseSuite) -> int:
    comments = [item for item in getattr(suite, "footer", ()) if item.comment is not None]
    return tree.line_end(tree.span(comments[-1].comment).end) if comments else 0


def _shortened(tree: PythonTree, arms: list[_Arm], left: list[_Arm]) -> Iterator[Edit]:
    for arm in arms:
        if arm not in left and arm.start != arms[0].start:
            yield delete_lines(tree, arm.start, arm.end)
    if left[0] is not arms[0]:
        yield delete_lines(tree, arms[0].start, arms[0].end)
        yield Edit(Span(left[0].code, left[0].code + len("el")), "")
    last = left[-1]
    if isinstance(last.node, cst.If) and last.known:
        yield Edit(Span(last.code, tree.outer(last.node.test).end), "else")


def _unwrapped(tree: PythonTree, arms: list[_Arm], kept: _Arm) -> Iterator[Edit]:
    body = kept.node.body
    if isinstance(body, cst.SimpleStatementSuite):
        start = tree.span(body.body[0]).start
        end = tree.line_end(tree.span(body).end)
        yield Edit(Span(tree.span(arms[0].node).start, start), "")
    else:
        start = _first_line(tree, body)
        end = max(tree.line_end(tree.span(body).end), _footer_end(tree, body))
        yield Edit(Span(arms[0].start, start), "")
        yield from _dedented(tree, body, start, end, len(tree.indent(arms[0].code)))
    if end < arms[-1].end:
        yield delete_lines(tree, end, arms[-1].end)


def _first_line(tree: PythonTree, body: cst.BaseSuite) -> int:
    """Return the first line of a suite that is not blank."""
    at = tree.line_end(tree.span(getattr(body, "header", body)).start)
    while not tree.text[at : tree.line_end(at)].strip():
        at = tree.line_end(at)
    return at


def _dedented(tree: PythonTree, body: cst.BaseSuite, start: int, end: int, depth: int) -> Iterator[Edit]:
    """Yield the edits that remove the suite's own indentation from its lines; lines inside string literals are kept."""
    indent = tree.indent(tree.outer(body.body[0]).start)
    literals = [tree.span(node) for node in tree.walk(body) if isinstance(node, cst.SimpleString | cst.FormattedString)]
    fixed = {
        line
        for literal in literals
        for line in _lines(tree, tree.line_end(literal.start), literal.end)
        if line < literal.end
    }
    for line in _lines(tree, start, end):
        if line not in fixed and tree.text.startswith(indent, line):
            yield Edit(Span(line + depth, line + len(indent)), "")


def _lines(tree: PythonTree, start: int, end: int) -> Iterator[int]:
    while start < end:
        yield start
        start = tree.line_end(start)

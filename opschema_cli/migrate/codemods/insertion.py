"""Writes an element into a list between commas, so that dropping it again restores the text."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from opschema_cli.migrate.codemods.elements import WithComma, element_span
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span


def insert_element(rewrite: Rewrite, elements: Sequence[WithComma], index: int, code: str, opening: int) -> None:
    """Write ``code`` as the element ``index`` of a list: on a line of its own where those beside it have one.

    Args:
        rewrite: the round.
        elements: all parameters of a signature or arguments of a call.
        index: the place of the new one; their number to add it behind the last.
        code: the new element.
        opening: where the list begins, right behind its bracket.
    """
    tree = rewrite.tree
    before = elements[index - 1] if index else None
    if index < len(elements):
        _before(rewrite, before, elements[index], code)
    elif before is None:
        rewrite.replace(Span(opening, opening), code)
    else:
        _behind(rewrite, tree, before, code)


def _before(rewrite: Rewrite, before: WithComma | None, following: WithComma, code: str) -> None:
    """Above the line of the element that follows, and above that one's comments; or in its line."""
    tree = rewrite.tree
    start = element_span(tree, following).start
    if not _begins_line(tree, start):
        rewrite.replace(Span(start, start), f"{code}, ")
        return
    floor = tree.line_end(_end(tree, before)) if before is not None else 0
    at = tree.comments_above(start, floor)
    rewrite.replace(Span(at, at), f"{tree.indent(start)}{code},{_newline(tree, tree.line_start(start) - 1)}")


def _behind(rewrite: Rewrite, tree: PythonTree, last: WithComma, code: str) -> None:
    start, end = element_span(tree, last)
    behind = _end(tree, last)
    comma = "," if behind > end else ""
    line_end = tree.line_end(behind)
    tail = tree.text[behind:line_end].strip()
    if not _begins_line(tree, start) or (tail and not tail.startswith("#")):
        rewrite.replace(Span(behind, behind), f" {code}," if comma else f", {code}")
        return
    if not comma:
        rewrite.replace(Span(end, end), ",")
    rewrite.replace(Span(line_end, line_end), f"{tree.indent(start)}{code}{comma}{_newline(tree, behind)}")


def _end(tree: PythonTree, element: WithComma) -> int:
    """End of an element, with its comma."""
    comma = element.comma
    return tree.span(comma).end if isinstance(comma, cst.Comma) else element_span(tree, element).end


def _begins_line(tree: PythonTree, offset: int) -> bool:
    """Whether only whitespace precedes a character on its line, and no backslash joins that line to the previous one."""
    line = tree.line_start(offset)
    return not tree.text[line:offset].strip() and not tree.text[max(0, line - 3) : line].rstrip("\r\n").endswith("\\")


def _newline(tree: PythonTree, offset: int) -> str:
    """The line end of a character's line."""
    line = tree.text[tree.line_start(offset) : tree.line_end(offset)]
    return line[len(line.rstrip("\r\n")) :]

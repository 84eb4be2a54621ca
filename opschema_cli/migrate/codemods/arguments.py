"""Adds arguments to calls, and changes the brackets of display literals."""

from __future__ import annotations

import libcst as cst

from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.source.text import Span


def add_keyword(rewrite: Rewrite, call: cst.Call, name: str, code: str) -> None:
    """Pass an argument by name, after the others; on a line of its own if the last one has one.

    Raises:
        Refused: the call passes it already, ``**`` may, or the only argument is a bare generator.
    """
    tree = rewrite.tree
    for arg in call.args:
        if arg.star == "**" or (arg.keyword is not None and arg.keyword.value == name):
            raise Refused([Problem(tree.span(arg).start, f"`{tree.code(arg)}` may pass {name}")])
        if isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar:
            raise Refused([Problem(tree.span(arg).start, "a bare generator must be the only argument")])
    text = f"{name}={code}"
    if not call.args:
        at = tree.span(call).end - 1
        _insert(rewrite, at, f", {text}" if rewrite.inserts_at(at) else text)
    else:
        _append(rewrite, call.args[-1], text)


def _append(rewrite: Rewrite, last: cst.Arg, text: str) -> None:
    tree = rewrite.tree
    start, end = element_span(tree, last)
    comma = tree.span(last.comma).end if isinstance(last.comma, cst.Comma) else None
    line, line_end = tree.line_start(start), tree.line_end(comma or end)
    if tree.text[line:start].strip():
        _insert(rewrite, comma or end, f" {text}," if comma else f", {text}")
        return
    tail = tree.text[comma or end : line_end]
    newline = tail[len(tail.rstrip("\r\n")) :]
    at = line_end - len(newline) if tail.lstrip(" \t").startswith("#") else comma or end
    if comma is None and at != end:
        _insert(rewrite, end, ",")
    before = "," if comma is None and at == end else ""
    _insert(rewrite, at, f"{before}{newline or ' '}{tree.indent(start) if newline else ''}{text}{',' if comma else ''}")


def to_list(rewrite: Rewrite, node: cst.Tuple) -> None:
    """Write a tuple's display as a list: ``(1, 2)`` becomes ``[1, 2]``, ``(1,)`` becomes ``[1]``."""
    tree = rewrite.tree
    start, end = tree.span(node)
    if not node.lpar:
        _insert(rewrite, start, "[")
        _insert(rewrite, end, "]")
        return
    opening, closing = tree.span(node.lpar[-1]).start, tree.span(node.rpar[0]).end
    rewrite.replace(Span(opening, opening + 1), "[")
    rewrite.replace(Span(closing - 1, closing), "]")
    if len(node.elements) == 1 and isinstance(node.elements[0].comma, cst.Comma):
        comma = tree.span(node.elements[0].comma)
        if "\n" not in tree.text[comma.start : closing]:
            rewrite.replace(Span(comma.start, comma.start + 1), "")


def _insert(rewrite: Rewrite, offset: int, text: str) -> None:
    rewrite.replace(Span(offset, offset), text)

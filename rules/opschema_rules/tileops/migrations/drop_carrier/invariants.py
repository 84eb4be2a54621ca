"""Demands of a check on every op: an output, and an input or a param to make it of."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from opschema_cli.migrate.codemods.assertions import replace_assertion
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Condition, Expr
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.tileops.conditions import emptiness, required
from opschema_rules.tileops.demands import Demand, filled
from opschema_rules.tileops.migrations.drop_carrier.expressions import expression_at


def relax(workbench: Workbench, demand: Demand) -> None:
    """Let a check that demands an input accept a param in its place, and demand an output where it did not.

    Raises:
        LeftAlone: what it demands is not written in a way that can be relaxed.
    """
    measured = emptiness(demand.test)
    holder = _holder(demand.body, measured[0]) if measured is not None else ""
    if measured is None or not holder:
        raise LeftAlone(demand.body.at(demand.test), "this demands an input of every op; accept a param in its place")
    with workbench.on(demand.body.file.path) as rewrite:
        tree = rewrite.tree
        test = expression_at(tree, demand.test.span)
        statement = tree.statement(test)
        if isinstance(statement, cst.Assert):
            relaxed = _relaxed(tree, test, "or", f'{holder}.get("params")', whole=statement.test is test)
            _relax_assertion(rewrite, statement, test, relaxed)
            if not _demands_outputs(demand.body):
                _add_output(rewrite, statement, measured[0], holder)
        elif isinstance(statement, cst.If):
            relaxed = _relaxed(tree, test, "and", f'not {holder}.get("params")', whole=statement.test is test)
            rewrite.replace(tree.outer(test), relaxed)
            _reword(rewrite, statement.body)


def _relax_assertion(rewrite: Rewrite, statement: cst.Assert, test: cst.BaseExpression, relaxed: str) -> None:
    """Write an assertion's new condition and message, the message on a line of its own where one line is too long."""
    tree = rewrite.tree
    whole, part = tree.span(statement.test), tree.outer(test)
    condition = tree.text[whole.start : part.start] + relaxed + tree.text[part.end : whole.end]
    if statement.test is not test and "\n" in condition:
        condition = f"({condition})"
    message = _reworded(tree.code(statement.msg)) if statement.msg is not None else None
    indent = tree.indent(tree.span(statement).start)
    if message is not None and _is_too_long(tree, f"{indent}assert {condition}, {message}"):
        message = f"({_newline(tree)}{indent}{tree.module.default_indent}{message}{_newline(tree)}{indent})"
    replace_assertion(rewrite, statement, condition, message)


def _is_too_long(tree: PythonTree, line: str) -> bool:
    """Whether a line is longer than any of the file, and than 88 characters."""
    return "\n" not in line and len(line) > max(88, *(len(other) for other in tree.text.splitlines()))


def _newline(tree: PythonTree) -> str:
    return "\r\n" if "\r\n" in tree.text else "\n"


_GET = re.compile(r"\s*\.\s*get\Z")


def _holder(body: Body, expr: Expr) -> str:
    """The code of the signature whose inputs an expression is."""
    if expr.kind == "name":
        binder = body.binder(expr.text)
        values = (binder.values(expr.text) if binder is body else None) or []
        return _holder(body, values[0]) if len(values) == 1 else ""
    expr = filled(expr)
    if expr.kind == "subscript":
        return body.file.text(expr.items[0])
    asked = _GET.search(body.file.text(expr.items[0])) if expr.kind == "call" else None
    return asked.string[: asked.start()] if asked is not None else ""


def _relaxed(tree: PythonTree, test: cst.BaseExpression, operator: str, other: str, *, whole: bool) -> str:
    text = tree.code(test)
    if isinstance(test, cst.BooleanOperation | cst.IfExp | cst.Lambda):
        text = f"({text})"
    bare = whole and "\n" not in f"{text}{other}"
    return f"{text} {operator} {other}" if bare else f"({text} {operator} {other})"


# Messages

_AT_LEAST = re.compile(r"\bat least (1|one) (?:input tensor|tensor input|input|tensor)s?\b", re.IGNORECASE)
_INPUTS = re.compile(r"\bsignature\.inputs\b|\binputs(?= (?:must|should|needs?)\b)")


def _reworded(text: str) -> str:
    """Return a message that describes the new requirement."""
    found = _AT_LEAST.sub(lambda match: f"at least {match[1]} input or param", text)
    return _INPUTS.sub("signature", found) if found != text else text


def _reword(rewrite: Rewrite, body: cst.CSTNode) -> None:
    """Reword the messages that a condition's body reports."""
    tree = rewrite.tree
    for node in tree.walk(body):
        if isinstance(node, cst.FormattedStringText | cst.SimpleString):
            text = _reworded(tree.code(node))
            if text != tree.code(node):
                rewrite.replace(tree.span(node), text)


# Outputs


def _demands_outputs(body: Body) -> bool:
    measured = (found for condition in body.scope.conditions for found, _ in _measured(condition))
    return any(_is_outputs(body, item) for item in measured)


def _measured(condition: Condition) -> Iterator[tuple[Expr, bool]]:
    for test in required(condition):
        found = emptiness(test)
        if found is not None:
            yield found


def _is_outputs(body: Body, expr: Expr) -> bool:
    if expr.kind == "name":
        return any(_is_outputs(body, value) for value in body.values(expr.text) or () if value.kind != "name")
    expr = filled(expr)
    return expr.kind in ("subscript", "call") and len(expr.items) > 1 and expr.items[1].value == "outputs"


def _add_output(rewrite: Rewrite, statement: cst.Assert, measured: Expr, holder: str) -> None:
    """Write the same assertion for outputs, below the other assertions on them."""
    tree = rewrite.tree
    line = tree.parent(statement)
    block = tree.parent(line) if line is not None else None
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, cst.IndentedBlock) or len(line.body) > 1:
        return
    code = tree.code(statement)
    if measured.kind == "name":
        if len(tree.names(measured.text, statement)) != 1:
            return
        code = re.sub(rf"\b{re.escape(measured.text)}\b", lambda _: f'{holder}.get("outputs")', code, count=1)
    code = re.sub(r"\binput(s?)\b", r"output\1", code)
    below = [item for item in block.body[list(block.body).index(line) :] if _names_outputs(tree, item)]
    end = tree.span((below or [line])[-1]).end
    rewrite.replace(Span(end, end), f"{_newline(tree)}{tree.indent(tree.span(statement).start)}{code}")


def _names_outputs(tree: PythonTree, node: cst.CSTNode) -> bool:
    asserts = isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Assert)
    return asserts and any(
        isinstance(item, cst.SimpleString) and item.raw_value == "outputs" for item in tree.walk(node)
    )

"""Adds to a validator the demand for an output, and for an input or a param, where it has none."""

from __future__ import annotations

import re

import libcst as cst
import msgspec

from opschema_cli.migrate.workbench import Workbench
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Condition, Expr, Function
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.tileops.conditions import inside
from opschema_rules.tileops.migrations.drop_carrier.expressions import expression_at


class SchemaCheck(msgspec.Struct, frozen=True):
    """A function that reports faults in an entry's sections, and its check of ``params``."""

    body: Body
    condition: Condition

    @property
    def function(self) -> Function:
        """The function."""
        assert self.body.function is not None
        return self.body.function


def schema_check(bodies: Bodies, path: str) -> SchemaCheck | None:
    """Return the first function of a validator that examines the sections of one signature and collects their errors."""
    file = bodies.program.load(path)
    for body in bodies.of(file) if file is not None else ():
        if body.function is None or body.parent is None or body.parent.function is not None:
            continue
        constants = {value for scope in body.scope.walk() for value in scope.strings}
        if {"inputs", "outputs", "params"} <= constants:
            for condition in body.scope.conditions:
                if condition.kind == "if" and _reads_params(condition.expr) and _appended(body, condition):
                    return SchemaCheck(body, condition)
    return None


def _reads_params(expr: Expr) -> bool:
    """Whether a condition reads the params of a signature: ``"params" in sig``, ``sig.get("params")``."""
    return any(item.value == "params" for item in expr.walk())


def _appended(body: Body, condition: Condition) -> list[Expr]:
    """The calls in a condition's body that add an error to a list."""
    calls = (call for call in body.scope.calls if inside(call.span, condition.body))
    return [call for call in calls if call.callee.endswith(".append") and len(call.items) == 2]


_PREFIX = re.compile(r"""[fF](["'])(?P<prefix>[^"'\\]*?\{\w+\}[^"'\\{}]*?)(?:signature\.)?params\b""")


def add_demands(workbench: Workbench, check: SchemaCheck) -> bool:
    """Write both demands below a schema check's look at ``params``, as it reports other errors; whether that was possible."""
    holder = _holder(check)
    calls = _appended(check.body, check.condition)
    reported = next(((call, match) for call in calls if (match := _PREFIX.search(check.body.file.text(call)))), None)
    if not holder or reported is None:
        return False
    call, match = reported
    with workbench.on(check.body.file.path) as rewrite:
        tree = rewrite.tree
        statement = tree.enclosing(expression_at(tree, check.condition.expr.span), cst.If)
        if statement is None or rewrite.is_gone(statement):
            return False
        indent = tree.indent(tree.span(statement).start)
        end = tree.line_end(tree.span(statement).end)
        rewrite.replace(Span(end, end), _text(tree, holder, call.callee, match, indent))
    return True


def _holder(check: SchemaCheck) -> str:
    """The code of the signature that the check looks at."""
    for item in check.condition.expr.walk():
        if item.kind == "compare" and item.text in ("in", "not-in") and item.items[0].value == "params":
            return check.body.file.text(item.items[1])
        if item.kind == "call" and item.callee.endswith(".get") and item.items[1].value == "params":
            return item.callee.removesuffix(".get")
    return ""


def _text(tree: PythonTree, holder: str, append: str, match: re.Match[str], indent: str) -> str:
    step, prefix, quote = _step(tree), match["prefix"], match[1]
    lines = ["", "# Every op makes an output, of an input or of params."]
    for test, text in (
        (f'not {holder}.get("outputs")', "signature.outputs must declare at least one tensor"),
        (
            f'not {holder}.get("inputs") and not {holder}.get("params")',
            "signature must declare at least one input or param",
        ),
    ):
        lines += [f"if {test}:", f"{step}{append}(", f"{step}{step}f{quote}{prefix}{text}{quote}", f"{step})"]
    newline = "\r\n" if "\r\n" in tree.text else "\n"
    return "".join(f"{indent}{line}".rstrip() + newline for line in lines)


def _step(tree: PythonTree) -> str:
    return tree.module.default_indent

"""Variables that the branches of a GPU `if` give values of different types."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_rules.flydsl.candidates import words
from opschema_rules.flydsl.changed_types import changes, unlike
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import DeviceValues, device_values
from opschema_rules.flydsl.gpu_blocks import head, in_rewritten
from opschema_rules.flydsl.model import FlyTree, Traced

_CHOICE = re.compile(r"else(?<!\welse)\b(?!\s*:)")
"""The `else` of a conditional expression."""


@rule("FLY232", "branch-value", pure=True)
def branch_value(file: FlyFile) -> Iterator[Diagnostic]:
    """A variable or an expression to which the GPU branches give values of different types.

    FlyDSL makes a function of each branch of an `if` whose condition is known on the GPU only, and of the body of such a
    `while`. It gets the variables that the branch assigns and returns them. So their values before the `if` and in the branch have
    to be GPU values of one type: an `fx.Int32` that becomes a float or an `fx.Int64`, `None` before, a string, and a list
    that gets longer raise `TypeError` when the function is traced. Loops over `range` do the same (FLY223). The two values of
    `a if c else b` have to be of one type, too.

    Begin with a value of the right type: `fx.Float32(0.0)`, `fx.Int64(n)`.

    Only variables are checked that get a value in the statements right before the `if` and are assigned in the branch itself, and
    only types that are sure.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        peer = None
        if n > 4:
            peer = n + 1
        A[0] = n
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        scale = 1
        if fx.thread_idx.x == 0:
            scale = 0.5
        A[0] = scale
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        parts = []
        if fx.thread_idx.x == 0:
            parts.append(n)
        A[0] = n
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        A[0] = fx.Int64(n) if n > 4 else 0.5
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, wide: fx.Constexpr[bool]):
        scale, peer = fx.Float32(1.0), None
        if fx.thread_idx.x == 0:
            scale = 0.5
        if fx.const_expr(wide):
            peer = n + 1
        A[0] = scale
    ```
    """
    yield from in_rewritten(file.tree, _changed)


def _changed(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    values = device_values(tree, traced)
    for choice, why in _choices(values, body):
        if not may_pass(tree, body, choice.start):
            message = f"the GPU branches return values of one type, and {why}: tracing raises `TypeError`"
            yield Diagnostic(message, body.at(choice), ops=(traced.title,))
    if not _may_branch(body, values.candidates):
        return

    def is_block(item: Statement) -> bool:
        return item.kind in ("if", "while") and _is_dynamic(values, body, item.exprs[0])

    for change in changes(values, body, is_block):
        if not may_pass(tree, body, change.statement.start):
            message = (
                f"`{change.name}` {change.why}, and a GPU branch, `{head(body, change.block)}`, must return a value of "
                "the same type: tracing raises `TypeError`; begin with a value of that type"
            )
            related = (Related(body.at(change.first), "the value before it"),)
            yield Diagnostic(message, body.at(change.statement.span), related, ops=(traced.title,))


def _is_dynamic(values: DeviceValues, body: Body, test: Expr) -> bool:
    """Whether a condition is known on the GPU only."""
    return test.kind == "compare" and bool(values.of(body, test))


def _choices(values: DeviceValues, body: Body) -> Iterator[tuple[Expr, str]]:
    """Yield the expressions ``a if c else b`` with two types, each with the reason."""
    outer = body.file.text(body.function.outer) if body.function is not None else ""
    text = body.file.source.text
    for item in all_statements(body.statements) if _CHOICE.search(outer) else ():
        if not any(text.find("else", part.start, part.end) >= 0 for part in item.exprs):
            continue
        for expr in own_expressions(item):
            why = (
                unlike(values, body, expr) if expr.kind == "ifexp" and _is_dynamic(values, body, expr.items[0]) else ""
            )
            if why:
                yield expr, why


def _may_branch(body: Body, device: frozenset[str]) -> bool:
    """Whether a comparison decides an `if` or a `while` that may depend on a GPU value, by facts and text alone."""
    text = body.file.text(body.function.outer) if body.function is not None else ""
    tests = (item.expr for item in body.scope.conditions if item.kind == "if" and item.expr.kind == "compare")
    return "while " in text or any(_may_be_device(body, test, device) for test in tests)


def _may_be_device(body: Body, test: Expr, device: frozenset[str]) -> bool:
    return not device.isdisjoint(words(body, test)) or "_idx" in body.file.text(test)

"""Conditions of the GPU that are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.evaluation.statements import all_statements, is_variable, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import excerpt
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_cli.source.text import Edit, Span
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.candidates import words
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_not_run
from opschema_rules.flydsl.device_values import DeviceValues, device_values
from opschema_rules.flydsl.gpu_blocks import in_rewritten
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.needs import is_const_expr
from opschema_rules.flydsl.number_types import NumberTypes
from opschema_rules.flydsl.operands import LONGEST
from opschema_rules.flydsl.proofs import TRACED

_TESTS = re.compile(r"\bwhile\b([^\n:]+)|\bif\b([^\n]+?)\belse\b")
_COMPARES = re.compile(r"[<>!]|==|const_expr|\b(?:in|is|not)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_OPERATORS = frozenset({"+", "-", "*", "//", "/", "%", "&", "|", "^", "<<", ">>"})
_NUMERIC = frozenset({"name", "attribute", "binary", "call"})


@rule("FLY229", "number-condition", fixable="safe", proof=TRACED, pure=True)
def number_condition(file: FlyFile) -> Iterator[Diagnostic]:
    """A GPU condition that is a number.

    The condition of an `if`, a `while` or a conditional expression has to be an `fx.Boolean`, as a comparison gives it. A number,
    such as `n`, `n & 1` or `fx.thread_idx.x % 2`, is not compared with 0 as Python does it: the module is not verified
    (`'scf.if' op operand #0 must be 1-bit signless integer`), so the function does not compile. `not n` is a comparison.

    Only numbers are reported that come from parameters annotated as such, from thread and block indices, and from loops of the
    GPU.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        if n & 1:
            A[0] = n
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        lane = fx.thread_idx.x % 64
        A[0] = 1 if lane else 0
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, wide: fx.Constexpr[int]):
        if (n & 1) != 0 or not n:
            A[0] = n
        if fx.const_expr(wide & 1):
            A[1] = n
        odd = n % 2 == 1
        if odd:
            A[2] = 1 if n > 4 else 0
    ```
    """
    yield from in_rewritten(file.tree, _numeric)


def _numeric(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    values = device_values(tree, traced)
    if not _may_ask(body, values.candidates):
        return
    types = NumberTypes(values)
    for item in all_statements(body.statements):
        for test in _conditions(item):
            if _is_numeric(types, body, test) and not may_not_run(tree, body, test.start):
                written = excerpt(body.file.text(test), LONGEST)
                message = (
                    f"`{written}` is a number, but a GPU condition must be an `fx.Boolean`: the function does not compile; "
                    "compare it with 0"
                )
                yield Diagnostic(message, body.at(test), (), _compared(body, test), ops=(traced.title,))


def _may_ask(body: Body, device: frozenset[str]) -> bool:
    """Whether a condition of a body may be a number, by facts and text alone."""
    text = body.file.text(body.function.outer) if body.function is not None else ""
    tests = [item.expr for item in body.scope.conditions if item.kind == "if" and item.expr.kind in _NUMERIC]
    plain = [test for test in tests if not is_const_expr(test)]
    if any(not device.isdisjoint(words(body, test)) for test in plain) or (plain and "thread_id(" in text):
        return True
    written = (match[1] or match[2] for match in _TESTS.finditer(text)) if "while" in text or "else" in text else ()
    return any(not _COMPARES.search(item) and not device.isdisjoint(_WORD.findall(item)) for item in written)


def _conditions(item: Statement) -> Iterator[Expr]:
    if item.kind in ("if", "while"):
        yield item.exprs[0]
    yield from (expr.items[0] for expr in own_expressions(item) if expr.kind == "ifexp")


def _is_numeric(types: NumberTypes, body: Body, test: Expr) -> bool:
    """Whether a GPU value is known to be a number and not the result of a comparison."""
    values = types.values
    if test.kind == "call":
        return _is_typed(types, body, test) and bool(values.of(body, test) or _is_computed(types, body, test.items[1]))
    if test.kind == "binary":
        return _is_arithmetic(types, body, test)
    if test.kind not in _NUMERIC or (not is_variable(test) and not values.of(body, test)):
        return False
    return not is_variable(test) or _is_number_name(types, values, body, test.text)


def _is_typed(types: NumberTypes, body: Body, call: Expr) -> bool:
    """Whether a call makes a FlyDSL number other than a Boolean."""
    last = call.callee.rpartition(".")[2]
    return (
        is_number(last)
        and last != "Boolean"
        and call.keywords == ("",)
        and bool(types.tree.names.full(body, call.callee))
    )


def _is_computed(types: NumberTypes, body: Body, expr: Expr) -> bool:
    """Whether a value is the result of a FlyDSL function, such as ``gpu.thread_id("x")``."""
    return (
        expr.kind == "call"
        and bool(types.tree.names.full(body, expr.callee))
        and not is_number(expr.callee.rpartition(".")[2])
    )


def _is_arithmetic(types: NumberTypes, body: Body, test: Expr) -> bool:
    if test.text not in _OPERATORS or not any(_is_numeric(types, body, item) for item in test.items):
        return False
    typed = (
        item.kind == "const" or _is_typed(types, body, item) or _is_numeric(types, body, item) for item in test.items
    )
    return test.text not in "&|^" or all(typed)


def _is_number_name(types: NumberTypes, values: DeviceValues, body: Body, name: str) -> bool:
    bound = values.bindings(body, name) or []
    if bound == [None]:
        declared = values.parameter(body, name)
        found = types.of(body, Expr("name", 0, 0, name))
        found = declared.dsl if not found and declared is not None and _is_unused(values) else found
        return is_number(found) and found != "Boolean"
    one = bound[0] if len(bound) == 1 else None
    return isinstance(one, Statement) or (isinstance(one, Expr) and _is_numeric(types, body, one))


def _is_unused(values: DeviceValues) -> bool:
    """Whether a kernel is only named at its definition, so that callers pass the annotated types."""
    traced = values.traced
    alone = traced.kind == "kernel" and traced.function.decorators == (traced.decorator,) and not traced.calls
    return alone and len(re.findall(rf"\b{traced.name}\b", traced.body.file.source.text)) == 1


def _compared(body: Body, test: Expr) -> Fix:
    """Return the fix that compares the condition with 0, as Python does."""
    text, path = body.file.text(test), body.file.path
    if test.kind == "binary":
        edits = (Edit(Span(test.start, test.start), "("), Edit(Span(test.end, test.end), ") != 0"))
        return Fix(f"write `({text}) != 0`", tuple(FileEdit(path, edit) for edit in edits))
    return Fix(f"write `{text} != 0`", (FileEdit(path, Edit(Span(test.end, test.end), " != 0")),))

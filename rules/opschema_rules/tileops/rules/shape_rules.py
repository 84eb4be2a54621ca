"""Shape rules as text: do they parse, do they hold on every call, do they check anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, Reference, parse_expression
from opschema_cli.source.text import Edit, Span
from opschema_rules.tileops.entry_parts import Rule
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.presence import unguarded
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.signature import (
    shape_rules,
)


@rule("SHP101", "rule-syntax", pure=True)
def rule_syntax(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule is not a Python expression.

    A rule that does not parse is never checked. It must be one expression: no statement, and no `=` instead of `==`.

    Bad:

    ```yaml
    signature:
      shape_rules:
        - "y.shape = x.shape"
    ```

    Good:

    ```yaml
    signature:
      shape_rules:
        - "y.shape == x.shape"
    ```
    """
    for item in entry.shape_rules:
        try:
            parse_expression(item.text)
        except ExpressionSyntaxError as error:
            place = entry.at(entry.inner(item.node, (error.offset, error.offset + 1)))
            hint = "; compare with `==`" if item.text[error.offset : error.offset + 1] == "=" else ""
            yield Diagnostic(
                f"the shape rule is not a Python expression: {error.reason}{hint}", place, ops=(entry.name,)
            )


@rule("SHP106", "optional-unguarded", pure=True)
def optional_unguarded(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule uses an optional input without saying what holds when it is not passed.

    Every rule applies to every call, including one that omits the input, where its name is `None`. So each use other than
    `x is None` and `x is not None` needs an earlier `x is None` among the operands of the rule's top-level `or`. The form
    `x is not None and …` reports a legal call without the input as a violation.

    This is checked if the tree's specification mentions optional inputs.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
      shape_rules:
        - "y.shape == x.shape"
        - "bias is not None and bias.shape == (x.shape[0],)"
    ```

    Good, the guard precedes the use, though it is not the first operand:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        scale: {dtype: "same_as(x)", optional: true}
        bias: {dtype: "same_as(x)", optional: true}
      shape_rules:
        - "y.shape == x.shape"
        - "(scale is None) == (bias is None)"
        - "scale is None or bias is None or bias.shape == scale.shape"
    ```
    """
    optional = {tensor.name: tensor for tensor in entry.inputs if tensor.optional}
    if not optional or not entry.manifest.spec.knows("optional"):
        return
    for item, expression in shape_rules(entry):
        first: dict[str, Reference] = {}
        for use in unguarded(expression, optional):
            first.setdefault(use.name, use)
        for name, use in first.items():
            place = entry.at(entry.inner(item.node, use.span))
            message = f"the rule uses the optional input `{name}` before `{name} is None or …` lets a call omit it"
            related = (entry.related(optional[name].key, f"`{name}` is optional"),)
            yield Diagnostic(message, place, related, ops=(entry.name,))


@rule("SHP110", "rule-without-check", severity="warning", fixable="unsafe", pure=True, proof=ROWS)
def rule_without_check(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule evaluates to a number or a shape, so it checks nothing.

    A rule must be true; any number but 0 and any shape but `()` counts as true. The usual cause is a conditional
    expression, which binds less tightly than `==`: `n == a if c else b` means `(n == a) if c else b`, and where `c` is
    false the rule is the number `b`, and `n` is not compared. Put the conditional in parentheses.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        same: {type: bool, default: false}
      shape_rules:
        - "y.shape[0] == x.shape[0] if same else x.shape[0] // 2 + 1"
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, same: bool = False, *, kernel_map=None):
            self.same = same
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if self.same else x[: x.shape[0] // 2 + 1]
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        same: {type: bool, default: false}
      shape_rules:
        - "y.shape[0] == (x.shape[0] if same else x.shape[0] // 2 + 1)"
        - "y.shape == x.shape if same else True"
        - "same or y.ndim == x.ndim"
    ```
    """
    for item, expression in shape_rules(entry):
        for node in _verdicts(expression.tree):
            if _is_quantity(node):
                span = expression.span_of(node)
                text = expression.text[span.start : span.end]
                message = f"`{text}` is a value and no comparison, so here the rule holds whatever it is"
                place = entry.at(entry.inner(item.node, span))
                fix = _parenthesise(entry, item, expression)
                hint = "; put the conditional in parentheses" if fix is not None else "; compare it with something"
                yield Diagnostic(message + hint, place, (), fix, (entry.name,), severity=Severity.WARNING)


def _verdicts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a rule that may be its result; operands of `or` may be numbers on purpose."""
    if isinstance(node, ast.IfExp):
        yield from _verdicts(node.body)
        yield from _verdicts(node.orelse)
    else:
        yield node


def _is_quantity(node: ast.expr) -> bool:
    """Whether an expression is known to be a number, a shape or a string; ``a & b`` may combine truth values."""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    if isinstance(node, ast.Constant):
        return bool(node.value) and node.value is not True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("broadcast_shapes", "reduced_shape", "tuple")
    shape = isinstance(node, ast.Attribute) and node.attr == "shape"
    return shape or (isinstance(node, ast.Tuple) and bool(node.elts))


def _parenthesise(entry: OpEntry, item: Rule, expression: Expression) -> Fix | None:
    """``n == (a if c else b)`` for ``n == a if c else b``."""
    node = expression.tree
    if not isinstance(node, ast.IfExp) or not isinstance(node.body, ast.Compare) or len(node.body.ops) != 1:
        return None
    if not isinstance(node.body.ops[0], ast.Eq) or not _is_quantity(node.orelse):
        return None
    span = Span(expression.start_of(node.body.comparators[0]), expression.span.end)
    place = entry.inner(item.node, span)
    raw = entry.file.source.text[place.start : place.end]
    if raw != expression.text[span.start : span.end] or raw.count("(") != raw.count(")"):
        return None
    edit = FileEdit(entry.file.path, Edit(place, f"({raw})"))
    return Fix(
        "put the conditional in parentheses", (edit,), "unsafe", "the rule then checks what it did not check before"
    )

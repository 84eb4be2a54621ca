"""Roofline formulas evaluated on every workload row."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.schema.describe import describe
from opschema_cli.schema.evaluate import EvaluateError, Tensor
from opschema_rules.tileops.bindings import bound_rows
from opschema_rules.tileops.formula_values import Result, results
from opschema_rules.tileops.formulas import Formula, formulas, not_arithmetic, optional_uses
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.ranks import beyond_rank
from opschema_rules.tileops.signature import statement


@rule("ROO104", "roofline-value", pure=True)
def roofline_value(entry: OpEntry) -> Iterator[Diagnostic]:
    """The value of a roofline formula on a workload row is not a count.

    `flops` and `bytes` are counts: finite numbers, never negative, and an op moves at least one byte. They are evaluated on
    each row, with the shapes, params and dimensions that the row gives, the variables in their order, and the size of the
    row's first dtype as `elem_bytes`. A formula that reads a name without a value is not checked, nor is a row that breaks
    a shape rule. An op may compute nothing (`flops: "0"`), but a formula that evaluates to 0 on every row is wrong. A
    `spec-only` entry may use constants until it is implemented.

    The manifest is the source of truth of the formulas, whether `eval_roofline()` is generated from them or not; a finding on
    a `spec-only` entry is a warning.

    Bad, it is 0 for a row with one column, and negative for wider rows:

    ```yaml
    roofline:
      vars:
        N: "x.shape[1]"
      flops: "2 * N"
      bytes: "(1 - N) * elem_bytes"
    ```

    Bad, `x` has two axes:

    ```yaml
    roofline:
      vars:
        N: "x.shape[2]"
      flops: "2 * N"
      bytes: "N * elem_bytes"
    ```

    Good:

    ```yaml
    roofline:
      vars:
        N: "product(x.shape)"
      flops: "0"
      bytes: "N * elem_bytes + ceil(log2(N))"
    ```
    """
    all_formulas = [formula for formula in formulas(entry) if formula.expression is not None]
    if not any(formula.layer == "arithmetic" for formula in all_formulas):
        return
    by_formula: dict[Formula, list[Result]] = {}
    for bound in bound_rows(entry):
        if not bound.broken:
            for result in results(bound, all_formulas):
                by_formula.setdefault(result.formula, []).append(result)
    for formula, found in by_formula.items():
        expression = formula.expression
        if expression is not None and any(beyond_rank(entry, expression)):
            continue  # which is SHP112's
        if entry.status != "spec-only" or not _is_placeholder(formula):
            yield from _judge(entry, found)


def _is_placeholder(formula: Formula) -> bool:
    """Whether a formula reads nothing, so that it may wait for an implementation."""
    return formula.expression is None or not formula.expression.names()


def _judge(entry: OpEntry, found: Sequence[Result]) -> Iterator[Diagnostic]:
    """One finding for a formula, on the first row that shows it."""
    faulty = [(result, fault) for result in found if (fault := _fault(entry, result))]
    if faulty:
        result, fault = faulty[0]
    elif _always_nothing(found):
        result, fault = found[0], "is 0 on every workload row, though it is not a literal `0`"
    else:
        return
    readings = _readings(result)
    message = f"`{result.formula.where}` {fault}" + (f": {readings}" if readings else "")
    related = (entry.related(result.bound.row.node, "the row"),)
    yield Diagnostic(message, entry.at(result.formula.node), related, ops=(entry.name,), severity=entry.severity)


def _fault(entry: OpEntry, result: Result) -> str:
    """Return the fault of a value; empty for a valid one, and for one that another rule explains by the formula's form."""
    value, formula = result.value, result.formula
    if isinstance(value, EvaluateError):
        if _reads_data(result) or _is_explained(entry, result):
            return ""
        return f"cannot be evaluated on a workload row, {value.reason}"
    if formula.layer == "vars":
        return ""
    if not isinstance(value, int | float):
        return "" if _is_explained(entry, result) else f"is {describe(value)} on a workload row, and no number"
    if value < 0 or (isinstance(value, float) and not math.isfinite(value)):
        return f"is {describe(value)} on a workload row, and no count"
    return (
        "is 0 on a workload row, but an op moves bytes"
        if formula.name == "bytes" and not value and _has_data(result)
        else ""
    )


def _is_explained(entry: OpEntry, result: Result) -> bool:
    """Whether a formula is not arithmetic where it has to be, or uses an optional input that the row leaves out."""
    formula, expression = result.formula, result.formula.expression
    held = formula.layer == "arithmetic" and entry.manifest.spec.knows("roofline-names")
    if held and expression is not None and next(not_arithmetic(expression.tree), None) is not None:
        return True
    omitted = [name for name in statement(entry).omittable if result.env.get(name, name) is None]
    return next(optional_uses(formula, omitted), None) is not None


def _reads_data(result: Result) -> bool:
    """Whether a formula reads a tensor otherwise than by an attribute, which is ROO103's."""
    expression = result.formula.expression
    if expression is None:
        return False
    bases = {expression.start_of(node.value) for node in expression.nodes if isinstance(node, ast.Attribute)}
    return any(
        isinstance(result.env.get(use.name), Tensor) and use.span.start not in bases for use in expression.names()
    )


def _has_data(result: Result) -> bool:
    """Whether no tensor of the row is empty."""
    shapes = [value.shape for value in result.bound.values.values() if isinstance(value, Tensor)]
    return not any(shape is not None and 0 in shape for shape in shapes)


def _always_nothing(found: Sequence[Result]) -> bool:
    formula, expression = found[0].formula, found[0].formula.expression
    if formula.layer == "vars" or expression is None or not expression.names():
        return False
    return all(isinstance(result.value, int | float) and not result.value and _has_data(result) for result in found)


def _readings(result: Result) -> str:
    """Return the values that a formula reads, as text."""
    expression = result.formula.expression
    words = []
    for name in dict.fromkeys(use.name for use in expression.names()) if expression is not None else ():
        value = result.env.get(name)
        if isinstance(value, Tensor):
            words.append(f"`{name}.shape` is {describe(value.shape)}")
        elif name in result.env:
            words.append(f"`{name}` is {describe(value)}")
    return ", ".join(words)

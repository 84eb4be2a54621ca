"""The axes that shape rules, static dimensions and formulas read of tensors whose rank is declared."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.expression import Expression
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.formulas import formulas
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.ranks import BeyondRank, beyond_rank, ranks
from opschema_rules.tileops.signature import STATIC_DIM, parsed, shape_rules, static_dims


@rule("SHP112", "axis-beyond-rank", pure=True)
def axis_beyond_rank(entry: OpEntry) -> Iterator[Diagnostic]:
    """An expression reads an axis that a tensor does not have.

    A declared `shape` fixes the rank, so `x.shape[2]` has no value on any call where `x` is `[M, K]`: a shape rule checks
    nothing, a static dimension can never be compared, and `eval_roofline()` raises. Shape rules, static dimensions and
    roofline formulas are checked; `flops` and `bytes` only where `roofline-form` lets them read shapes. Expressions after a
    condition are not checked, since it may be a guard on the rank (`x.ndim < 3 or …`); presence tests (`bias is None or …`)
    are not such a guard.

    In the roofline of a `spec-only` entry this is a warning.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]"}
      shape_rules:
        - "y.shape == x.shape"
        - "x.shape[2] % 8 == 0"
    ```

    Bad, in a static dimension and in the roofline:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]"}
        bias: {dtype: "same_as(x)", shape: "[K]", optional: true}
      static_dims:
        N: "x.shape[-3]"
      shape_rules:
        - "y.shape == x.shape"
        - "bias is None or bias.shape[1] > 0"
    roofline:
      vars:
        N: "x.shape[0] * x.shape[2]"
      flops: "2 * N"
      bytes: "2 * N * elem_bytes"
    ```

    Good, `z` has any rank:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]"}
        z: {dtype: "same_as(x)"}
      shape_rules:
        - "y.shape == x.shape"
        - "x.ndim < 3 or x.shape[2] % 8 == 0"
        - "x.shape[-2] == z.shape[2] and x.shape[2:] == ()"
        - "all(size == x.shape[2] for size in x.shape[2:])"
    ```
    """
    if not ranks(entry):
        return
    for item, rule_expression in shape_rules(entry):
        yield from _beyond(entry, item.node, rule_expression)
    for _, node, text in static_dims(entry):
        expression = parsed(text) if STATIC_DIM.fullmatch(text) else None
        yield from _beyond(entry, node, expression) if expression is not None else ()
    inputs, layered = {tensor.name for tensor in entry.inputs}, entry.manifest.spec.knows("roofline-names")
    for formula in formulas(entry):
        if formula.expression is not None and not (formula.layer == "arithmetic" and layered):
            yield from _beyond(entry, formula.node, formula.expression, inputs, severity=entry.severity)


def _beyond(
    entry: OpEntry,
    node: Node,
    expression: Expression,
    names: set[str] | None = None,
    *,
    severity: Severity = Severity.ERROR,
) -> Iterator[Diagnostic]:
    for found in beyond_rank(entry, expression):
        tensor = found.tensor
        if names is None or tensor.name in names:
            shape = tensor.attribute("shape")
            related = (entry.related(shape, f"the shape of `{tensor.name}`"),) if shape is not None else ()
            place = entry.at(entry.inner(node, found.span))
            yield Diagnostic(_message(found), place, related, ops=(entry.name,), severity=severity)


def _message(found: BeyondRank) -> str:
    name, last = found.tensor.name, found.rank - 1
    axes = (
        f"its axes are 0 to {last}, or -{found.rank} to -1" if last > 0 else "its only axis is 0" if last == 0 else ""
    )
    has = f"whose shape is `{found.tensor.shape}`"
    return f"`{found.text}` reads an axis that `{name}` does not have, {has}" + (f"; {axes}" if axes else "")

"""Roofline formulas as text: do they parse, are their names known, do they keep to the form of their layer."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Set

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.expression import Expression, ExpressionSyntaxError, Reference, parse_expression
from opschema_cli.source.text import Span
from opschema_rules.tileops.formula_scope import foreign_names, unbound_names
from opschema_rules.tileops.formulas import Formula, formulas, not_arithmetic, optional_uses, runner
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.vocabulary import VARS_HELPERS


@rule("ROO101", "roofline-syntax", pure=True)
def roofline_syntax(entry: OpEntry) -> Iterator[Diagnostic]:
    """A roofline formula is not a Python expression.

    The values of `vars`, `flops` and `bytes` are expressions; one that does not parse can never be evaluated.

    Bad:

    ```yaml
    roofline:
      flops: "2 * N *"
      bytes: "4"
    ```

    Good:

    ```yaml
    roofline:
      vars:
        N: "product(x.shape)"
      flops: "2 * N"
      bytes: "4"
    ```
    """
    for formula in formulas(entry):
        try:
            parse_expression(formula.text)
        except ExpressionSyntaxError as error:
            place = entry.at(entry.inner(formula.node, (error.offset, error.offset + 1)))
            yield Diagnostic(f"`{formula.where}` is not a Python expression: {error.reason}", place, ops=(entry.name,))


@rule("ROO102", "roofline-unbound", candidates=foreign_names)
def roofline_unbound(entry: OpEntry) -> Iterator[Diagnostic]:
    """A roofline formula reads a name that has no value there.

    A variable in `vars` may read inputs, params, dimensions of the inputs' shapes, `elem_bytes`, the helpers, and the
    variables above it; `flops` and `bytes` read variables, params, dimensions and `elem_bytes`, and call only `ceil`,
    `floor` and `log2`. Outputs cannot be read: they do not exist before the op runs. `eval_roofline()` is generated from
    the formulas, and is missing if one of them reads anything else. If the tree's own generator lists the names that it
    binds, and dimensions of shapes are not among them, a formula may not read those either.

    If the op has a hand-written `eval_roofline()`, the formula does not run and only misleads its readers: a warning,
    unless neither the entry nor any workload row has a name that it reads. This is checked if the tree's documents state
    the names that a formula may read.

    Bad, `y` is an output:

    ```yaml
    roofline:
      vars:
        N: "product(y.shape)"
      flops: "2 * N"
      bytes: "2 * N * elem_bytes"
    ```

    Bad, `M` is defined below its use:

    ```yaml
    roofline:
      vars:
        N: "M * x.shape[1]"
        M: "x.shape[0]"
      flops: "2 * N"
      bytes: "2 * N * elem_bytes"
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]"}
    roofline:
      vars:
        N: "sum(size for size in x.shape) + M"
      flops: "2 * N * K * ceil(eps)"
      bytes: "2 * N * elem_bytes"
    ```
    """
    for found in unbound_names(entry):
        who = runner(entry)
        sides = (*found.related, *who.related())
        severity = Severity.ERROR if found.never else who.severity
        yield Diagnostic(found.message, entry.at(found.span), sides, ops=(entry.name,), severity=severity)


def _misshapen(entry: OpEntry) -> Iterator[tuple[str, Span]]:
    """Yield messages and places of names that formulas use and their layer does not have."""
    if not entry.manifest.spec.knows("roofline-names"):
        return
    taken = (
        {tensor.name for tensor in entry.inputs}
        | {param.name for param in entry.params}
        | {"elem_bytes", *VARS_HELPERS}
    )
    for formula in formulas(entry):
        yield from _malformed(entry, formula)
        if formula.layer == "vars":
            yield from _misnamed(formula, taken)
            taken.add(formula.name)


@rule("ROO103", "roofline-form", candidates=_misshapen)
def roofline_form(entry: OpEntry) -> Iterator[Diagnostic]:
    """A roofline formula uses syntax that its layer does not allow.

    Shapes are read in `vars`: `x.shape` and `x.ndim` of inputs, slices, comprehensions, helpers; not a tensor's data, other
    attributes, methods or `lambda`. `flops` and `bytes` are arithmetic on variables, so that they are easy to read: no
    attributes, subscripts or comprehensions. A variable may not have the name of something that a formula already knows.
    `eval_roofline()` is generated from the formulas, and is missing if one of them has another form.

    If the op has a hand-written `eval_roofline()`, this is a warning. This is checked if the tree's documents state the
    layers.

    Bad:

    ```yaml
    roofline:
      flops: "2 * x.shape[0]"
      bytes: "4 * elem_bytes"
    ```

    Bad:

    ```yaml
    roofline:
      vars:
        N: "x.numel()"
      flops: "2 * N"
      bytes: "4 * N * elem_bytes"
    ```

    Good:

    ```yaml
    roofline:
      vars:
        N: "product(size for size in x.shape if size > 1)"
        flat: "x.ndim == 1"
      flops: "2 * N if flat and N > 1 else N"
      bytes: "4 * N * elem_bytes"
    ```
    """
    for message, span in _misshapen(entry):
        who = runner(entry)
        yield Diagnostic(message, entry.at(span), tuple(who.related()), ops=(entry.name,), severity=who.severity)


def _misnamed(formula: Formula, taken: Set[str]) -> Iterator[tuple[str, Span]]:
    if not formula.name.isidentifier():
        yield f"the variable `{formula.name}` is not a Python name", formula.key.span
    elif formula.name in taken:
        yield f"the variable `{formula.name}` shadows a name that formulas can use; rename it", formula.key.span


def _malformed(entry: OpEntry, formula: Formula) -> Iterator[tuple[str, Span]]:
    expression = formula.expression
    if expression is None:
        return
    nodes = not_arithmetic(expression.tree) if formula.layer == "arithmetic" else _not_of_shapes(entry, expression)
    for node in nodes:
        span = expression.span_of(node)
        text = expression.text[span.start : span.end]
        if formula.layer == "arithmetic":
            message = f"`{formula.where}` uses `{text}`; it is arithmetic on variables, so put that in `vars`"
        else:
            message = (
                f"`{formula.where}` uses `{text}`; a variable reads `.shape` and `.ndim` of inputs, params and helpers"
            )
        yield message, entry.inner(formula.node, span)


_NO_SHAPES = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def _not_of_shapes(entry: OpEntry, expression: Expression) -> Iterator[ast.expr]:
    """The parts of a variable that are more than shapes; names that are not known are ROO102's, optional inputs ROO105's."""
    inputs = {tensor.name: tensor for tensor in entry.inputs}
    free = {use.span.start for use in expression.names()}
    nodes = expression.nodes
    # `x.numel()` is one fault, not two; and only what stands alone reads the tensor itself.
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    read = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name):
            tensor = inputs.get(node.id) if id(node) not in read and expression.start_of(node) in free else None
            if tensor is not None and not tensor.optional and not tensor.misstates("optional"):
                yield node
        elif id(node) not in called and _is_no_shape(node, inputs):
            yield node


def _is_no_shape(node: ast.expr, inputs: Container[str]) -> bool:
    if isinstance(node, ast.Call):
        return not isinstance(node.func, ast.Name)
    if isinstance(node, ast.Attribute):
        if not isinstance(node.value, ast.Name):
            return True
        return node.value.id in inputs and node.attr not in ("shape", "ndim")
    return isinstance(node, _NO_SHAPES)


@rule("ROO105", "optional-in-roofline", pure=True)
def optional_in_roofline(entry: OpEntry) -> Iterator[Diagnostic]:
    """A roofline formula uses an optional input for more than a check whether it is passed.

    On a call that omits the input, its name is `None` and has no shape. `vars` may test it, `bias is not None`, and `flops`
    and `bytes` read that variable; a formula that needs the tensor's own shape must be a function (`roofline.func`).

    This is checked if the tree's specification mentions optional inputs.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    roofline:
      vars:
        N: "product(x.shape)"
        C: "0 if bias is None else bias.shape[0]"
      flops: "2 * N + C"
      bytes: "2 * N * elem_bytes"
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    roofline:
      vars:
        N: "product(x.shape)"
        has_bias: "bias is not None"
      flops: "2 * N + (N if has_bias else 0)"
      bytes: "2 * N * elem_bytes"
    ```
    """
    optional = {tensor.name: tensor for tensor in entry.inputs if tensor.optional}
    if not optional or not entry.manifest.spec.knows("optional"):
        return
    for formula in formulas(entry):
        first: dict[str, Reference] = {}
        for use in optional_uses(formula, optional):
            first.setdefault(use.name, use)
        for name, use in first.items():
            what = (
                "only tests whether it is passed" if formula.layer == "vars" else "reads no tensor; test it in `vars`"
            )
            message = f"`{formula.where}` uses the optional input `{name}`; a formula there {what}"
            related = (entry.related(optional[name].key, f"`{name}` is optional"),)
            yield Diagnostic(message, entry.at(entry.inner(formula.node, use.span)), related, ops=(entry.name,))

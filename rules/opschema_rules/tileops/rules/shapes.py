"""Declared shapes: of tensors, of the dimensions that a constructor commits to, and their restrictions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.shapes import ShapeProblem, parse_shape
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import STATIC_DIM, is_complete, shape_rules, static_dims
from opschema_rules.tileops.vocabulary import closest, states


@rule("SHP103", "static-dim-form", pure=True)
def static_dim_form(entry: OpEntry) -> Iterator[Diagnostic]:
    """A static dimension is not one axis of an input.

    On every call, a static dimension is compared with one axis of one input: `N: "x.shape[-1]"`. The axis is an integer or
    a declared param. Products, slices and outputs are not allowed.

    Bad:

    ```yaml
    signature:
      static_dims:
        N: "x.shape[0] * x.shape[1]"
    ```

    Bad, `y` is an output:

    ```yaml
    signature:
      static_dims:
        N: "y.shape[-1]"
    ```

    Bad, `dim` is not a param:

    ```yaml
    signature:
      static_dims:
        N: "x.shape[dim]"
    ```

    Good:

    ```yaml
    signature:
      params:
        dim: {type: int, default: -1}
      static_dims:
        N: "x.shape[dim]"
        M: "x.shape[-2]"
    ```
    """
    inputs = [tensor.name for tensor in entry.inputs]
    params = [param.name for param in entry.params]
    for key, node, text in static_dims(entry):
        match = STATIC_DIM.fullmatch(text)
        if match is None:
            message = f"the static dimension `{key.value}` is `{text}`; it must be one axis of an input, `x.shape[-1]`"
            yield Diagnostic(message, entry.at(node), ops=(entry.name,))
            continue
        tensor, axis = match.groups()
        if tensor not in inputs and _is_whole(entry, "inputs"):
            message = (
                f"the static dimension `{key.value}` reads `{tensor}`, which is not an input{closest(tensor, inputs)}"
            )
            yield Diagnostic(message, entry.at(entry.inner(node, match.span(1))), ops=(entry.name,))
        if not re.fullmatch(r"-?\d+", axis, re.ASCII) and axis not in params and _is_whole(entry, "params"):
            message = f"the axis `{axis}` of the static dimension `{key.value}` is neither an integer nor a param"
            place = entry.at(entry.inner(node, match.span(2)))
            yield Diagnostic(message + closest(axis, params), place, ops=(entry.name,))


def _is_whole(entry: OpEntry, section: str) -> bool:
    """Whether a section of the signature holds nothing that cannot be read."""
    node = entry.get("signature", section)
    found = entry.inputs if section == "inputs" else entry.params
    if entry.doubtful("signature", section):
        return False
    return node is None or (node.is_mapping and len(list(node.pairs())) == len(found))


@rule("SHP104", "shape-declaration", pure=True)
def shape_declaration(entry: OpEntry) -> Iterator[Diagnostic]:
    """A declared shape is not a list of dimensions.

    `shape` is one shape in brackets; its dimensions are names, integers, or sums and products of them. Tools read the rank
    and the dimension names from it, so an unclosed bracket, a missing dimension or other text makes it useless.

    Alternatives (`[M, K] | [K, M]`) are errors if the tree's specification says that a shape is one declaration. An open
    rank or size (`...`, `*`), and `same_as(x)` for the shape of another tensor, are warnings if it says so: a tensor of any
    rank has no `shape`, and rules relate it to others.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K"}
    ```

    Bad, one declaration is one shape:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K] | [B, M, K]"}
    ```

    Bad, it leaves the rank open:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[..., K]"}
    ```

    Good, a scalar, arithmetic and the list form:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, NC + 1, 2 * K]"}
        scale: {dtype: "float32", shape: "[]"}
        bias: {dtype: "float32", shape: [M, 4]}
    ```
    """
    spec = entry.manifest.spec
    for tensor in entry.tensors:
        node, text = tensor.attribute("shape"), tensor.shape
        if node is None or text is None:
            continue
        node = entry.file.document.follow(node)
        declaration = parse_shape(text)
        where = f"{tensor.direction}.{tensor.name}.shape"
        for problem in declaration.problems:
            severity = _severity(entry, problem)
            if severity is not None:
                message = f"`{where}` is not a list of dimensions: {problem.message}"
                yield Diagnostic(
                    message, entry.at(_span(entry, node, problem.span)), ops=(entry.name,), severity=severity
                )
        if declaration.alias is not None and spec.knows("no-shape-alias"):
            other = declaration.alias.name
            message = f"`{where}` repeats the shape of `{other}`; declare the dimensions, or a rule `{tensor.name}.shape == …`"
            severity = spec.severity("no-shape-alias", Severity.WARNING)
            yield Diagnostic(message, entry.at(node), ops=(entry.name,), severity=severity)


def _severity(entry: OpEntry, problem: ShapeProblem) -> Severity | None:
    """Return the severity of a problem; None if the tree's specification allows it or leaves it open."""
    spec = entry.manifest.spec
    if problem.kind == "alternatives":
        return Severity.ERROR if spec.knows("shape-alternatives") else None
    if problem.kind in ("ellipsis", "wildcard"):
        return spec.severity("no-ellipsis", Severity.WARNING) if spec.knows("no-ellipsis") else None
    return Severity.WARNING if problem.kind == "expression" else Severity.ERROR


def _span(entry: OpEntry, node: Node, span: Span) -> Span:
    return entry.inner(node, span) if node.kind == "scalar" else node.span


PREDICATES = ("power_of_2", "divisible_by(k)", "even", "positive")
"""Restrictions that the specification knows, beside an enumeration of sizes."""

_PREDICATE = re.compile(r"power_of_2|even|positive|divisible_by\(\s*\w+\s*\)")
_SIZES = re.compile(r"\s*\d+\s*(\|\s*\d+\s*)*")


@rule("SHP105", "constraint-dim", pure=True)
def constraint_dim(entry: OpEntry) -> Iterator[Diagnostic]:
    """A constraint names a dimension that the shape does not have, or has an unknown form.

    `constraints` maps a dimension of the tensor's own `shape` to the sizes it may have, `"64 | 128 | 256"`, or to a
    predicate: `power_of_2`, `divisible_by(k)`, `even`, `positive`. A key that is not a dimension restricts nothing.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]", constraints: {N: "even"}}
    ```

    Bad, an unknown predicate:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]", constraints: {K: "power_of_two"}}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K, 2 * L]", constraints: {K: "64 | 128", M: "divisible_by(8)"}}
    ```
    """
    for tensor in entry.tensors:
        owner = tensor.attribute("constraints")
        text = tensor.shape
        if owner is None or text is None:
            continue
        declaration = parse_shape(text)
        dims = None if declaration.problems else [item.text for item in declaration.dimensions or ()]
        for key, value in entry.file.document.follow(owner).pairs():
            if key.kind == "scalar" and dims is not None and key.value not in dims and key.value != "<<":
                message = f"`{key.value}` is not a dimension of `{tensor.name}`, whose shape is `{text}`"
                related = (entry.related(tensor.node.get("shape") or tensor.node, "the shape"),)
                yield Diagnostic(message + closest(key.value, dims), entry.at(key), related, ops=(entry.name,))
            yield from _predicate(entry, entry.file.document.follow(value))


def _predicate(entry: OpEntry, node: Node) -> Iterator[Diagnostic]:
    text = node.value
    if node.kind != "scalar" or not isinstance(entry.data_of(node), str):
        return  # MAN101 reports other kinds; a single size may be written as an integer
    if _SIZES.fullmatch(text) or _PREDICATE.fullmatch(text.strip()) or _is_stated(entry, text):
        return
    known = quoted(PREDICATES)
    message = f"the constraint `{text}` is neither sizes such as `64 | 128` nor one of {known}"
    yield Diagnostic(message, entry.at(node), ops=(entry.name,))


def _is_stated(entry: OpEntry, text: str) -> bool:
    name = re.match(r"\s*(\w+)", text)
    return name is not None and not name[1].isdigit() and states(entry.manifest.spec, name[1])


@rule("SHP109", "output-shape", pure=True)
def output_shape(entry: OpEntry) -> Iterator[Diagnostic]:
    """The shape of an output is not declared.

    An output has a `shape`, or a shape rule that reads it. If it has neither, it cannot be allocated, faked or checked from
    the manifest. A signature without any shape rule is reported as MAN101.

    This is checked if the tree's specification requires that the shape of every output is specified: an error where it says
    "must", else a warning.

    Bad:

    ```yaml
    signature:
      outputs:
        y: {dtype: "same_as(x)"}
        count: {dtype: "int32"}
      shape_rules:
        - "y.shape == x.shape"
    ```

    Good:

    ```yaml
    signature:
      outputs:
        y: {dtype: "same_as(x)"}
        rest: {dtype: "same_as(x)"}
        count: {dtype: "int32", shape: "[]"}
      shape_rules:
        - "y.shape == x.shape"
        - "rest.ndim == 1"
    ```
    """
    rules = shape_rules(entry)
    if not rules or not is_complete(entry) or not entry.manifest.spec.knows("output-shape"):
        return
    mentioned = {use.name for _, expression in rules for use in expression.names()}
    for tensor in entry.outputs:
        if tensor.attribute("shape") is None and tensor.name not in mentioned:
            message = f"nothing says what shape `{tensor.name}` has; declare its `shape`, or a rule `{tensor.name}.shape == …`"
            severity = entry.manifest.spec.severity("output-shape", Severity.WARNING)
            yield Diagnostic(message, entry.at(tensor.key), ops=(entry.name,), severity=severity)

"""Workload rows against the signature's statements on every call: shape rules, declared shapes and constraints, evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.describe import describe
from opschema_cli.schema.evaluate import SHAPE_FUNCTIONS, Tensor
from opschema_cli.schema.outcomes import Failed, Holds, Violated
from opschema_rules.tileops.bindings import BoundRow, bound_rows
from opschema_rules.tileops.constraints import Exclusion, excluded_sizes
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.presence import unguarded
from opschema_rules.tileops.ranks import beyond_rank
from opschema_rules.tileops.signature import Equation, statement

SHOWN_ROWS = 3
"""Maximum number of rows that a finding about all of them points to."""


class Breach(msgspec.Struct, frozen=True):
    """An equation that a row breaks."""

    equation: Equation
    bound: BoundRow
    outcome: Violated


@rule("WKL201", "row-breaks-rule", pure=True)
def row_breaks_rule(entry: OpEntry) -> Iterator[Diagnostic]:
    """A workload row is a call that the signature does not allow.

    Shape rules, declared shapes and static dimensions apply to every call, including those that the rows describe. They are
    evaluated on each row without running the op: `{tensor}_shape` is the shape of a tensor, a param has the row's value or its
    default, an optional input without a shape is `None`, and a row may give a dimension by its name. Dimensions that follow from
    the rules (`q.shape == (B, S, H, D)` defines four) are known, too. A row breaks a rule only if no values of the unknown
    dimensions could satisfy it. Aggregate keys such as `kv_shape` are ignored.

    If no row satisfies a rule, there is one finding at the rule. `optional-unguarded` reports a rule that uses an input that a
    row omits.

    Bad, `weight` has the length of the wrong axis:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        weight: {dtype: "same_as(x)"}
      shape_rules:
        - "weight.shape == (x.shape[1],)"
        - "y.shape == x.shape"
    workloads:
      - {x_shape: [4, 8], weight_shape: [4], dtypes: [float16], label: "small"}
      - {x_shape: [16, 32], weight_shape: [32], dtypes: [float16], label: "large"}
    ```

    Bad, a declared shape:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, N]"}
    workloads:
      - {x_shape: [4, 8, 2], dtypes: [float16], label: "small"}
      - {x_shape: [4, 8], dtypes: [float16], label: "flat"}
    ```

    Good, `kv_shape` may mean anything, and `H_kv` stays open:

    ```yaml
    signature:
      inputs:
        q: {dtype: "float16 | float32"}
        k: {dtype: "same_as(q)"}
      shape_rules:
        - "q.shape == (B, H, D)"
        - "k.shape == (B, N_kv, H_kv, D)"
        - "H % H_kv == 0"
        - "y.shape == q.shape"
    workloads:
      - {q_shape: [2, 32, 128], kv_shape: [2, 512, 5, 128], dtypes: [float16], label: "decode"}
      - {q_shape: [2, 32, 128], N_kv: 512, k_shape: [2, 512, 4, 128], dtypes: [float16], label: "known"}
    ```
    """
    breaches: dict[Equation, list[Breach]] = {}
    decided: dict[Equation, int] = {}
    for bound in bound_rows(entry):
        for equation, outcome in bound.outcomes:
            if isinstance(outcome, Violated | Failed) and _is_unguarded(entry, bound, equation):
                continue
            if isinstance(outcome, Violated):
                breaches.setdefault(equation, []).append(Breach(equation, bound, outcome))
            if isinstance(outcome, Violated | Holds):
                decided[equation] = decided.get(equation, 0) + 1
    for equation, found in breaches.items():
        if len(found) == decided[equation] > 1:
            yield _of_all_rows(entry, found)
        else:
            yield from (_of_row(entry, breach) for breach in found)


def _is_unguarded(entry: OpEntry, bound: BoundRow, equation: Equation) -> bool:
    """Whether a rule uses an optional input that the row leaves out: then the rule is wrong, as `optional-unguarded` says."""
    omitted = [name for name in statement(entry).omittable if bound.values.get(name, name) is None]
    return equation.kind == "rule" and next(unguarded(equation.expression, omitted), None) is not None


def _origins(entry: OpEntry, breach: Breach) -> Iterator[Related]:
    """Yield the rules that give values which an equation reads and the row does not give, and the params whose defaults it
    reads.
    """
    bound = breach.bound
    nodes = {equation.expression: equation.node for equation, _ in bound.outcomes}
    for name in dict.fromkeys(use.name for use in breach.equation.expression.names()):
        for key in (name, f"{name}.shape", _as_size(name)):
            node = nodes.get(bound.found_by.get(key, breach.equation.expression))
            if node is not None and node is not breach.equation.node:
                yield entry.related(node, f"gives `{name if key == _as_size(name) else key}`")
        param = entry.param(name)
        if param is not None and _by_default(entry, bound, name) and name in bound.values:
            yield entry.related(param.node, f"the default of `{name}`")


def _of_row(entry: OpEntry, breach: Breach) -> Diagnostic:
    equation, bound = breach.equation, breach.bound
    message = f"the row breaks {stated(equation)}: {_readings(entry, breach)}"
    related = (entry.related(equation.node, "every call must satisfy this"), *_origins(entry, breach))
    return Diagnostic(message, _blamed(entry, bound, equation), related, ops=(entry.name,))


def _of_all_rows(entry: OpEntry, found: Sequence[Breach]) -> Diagnostic:
    equation = found[0].equation
    message = f"none of the {len(found)} workload rows satisfies {stated(equation)}: in the first, {_readings(entry, found[0])}"
    rows = tuple(entry.related(breach.bound.row.node, "it breaks it") for breach in found[:SHOWN_ROWS])
    return Diagnostic(message, entry.at(equation.node), (*rows, *_origins(entry, found[0])), ops=(entry.name,))


def stated(equation: Equation) -> str:
    """An equation as its author wrote it."""
    if equation.kind == "rule":
        return f"the shape rule `{equation.expression.text}`"
    right = equation.expression.text.partition(" == ")[2]
    if equation.kind == "static-dim":
        return f"the static dimension `{equation.name}`, which is `{right}`"
    return f"the declared shape of `{equation.name}`, `{_as_declared(right)}`"


def _as_declared(shape: str) -> str:
    inner = re.fullmatch(r"\((.*?),?\)", shape)
    return shape if inner is None else f"[{inner[1]}]"


def _readings(entry: OpEntry, breach: Breach) -> str:
    """Return the known values that an equation reads, as text, and why no value of the others helps."""
    found = dict.fromkeys(_known(entry, breach.bound, breach.equation))
    return ", ".join(found) or breach.outcome.conflict or "it is false"


def _known(entry: OpEntry, bound: BoundRow, equation: Equation) -> Iterator[str]:
    inputs = {tensor.name for tensor in entry.inputs}
    expression = equation.expression
    shapes = {expression.start_of(node.value) for node in expression.nodes if isinstance(node, ast.Attribute)}
    for name, (start, _) in expression.names():
        value = bound.values.get(name, UNKNOWN)
        if start not in shapes and _as_size(name) in bound.values:
            yield f"`{name}` is {describe(bound.values[_as_size(name)])}"
        elif isinstance(value, Tensor):
            if value.shape is not None:
                yield f"`{name}.shape` is {describe(value.shape)}"
        elif value is None and name in inputs:
            yield f"`{name}` is not passed"
        elif value is not UNKNOWN:
            yield f"`{name}` is {describe(value)}" + (" by default" if _by_default(entry, bound, name) else "")


UNKNOWN: Any = object()


def _as_size(name: str) -> str:
    """The solver's name for a dimension that shares its name with a tensor."""
    return f"{name} (size)"


def _by_default(entry: OpEntry, bound: BoundRow, name: str) -> bool:
    return entry.param(name) is not None and name not in bound.row.data


def _blamed(entry: OpEntry, bound: BoundRow, equation: Equation) -> Place:
    """The one value of the row that an equation depends on; the row where there are more."""
    names: set[str] = set()
    new = {use.name for use in equation.expression.names()}
    while new:
        names |= new
        origins = [bound.found_by.get(name) for name in (*new, *map(_as_size, new))]
        new = {use.name for origin in origins if origin is not None for use in origin.names()} - names
    nodes = [node for name in sorted(names) if (node := bound.source(name)) is not None]
    return entry.at(nodes[0] if len(nodes) == 1 else bound.row.node)


@rule("WKL202", "rule-fails", severity="warning", pure=True)
def rule_fails(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule cannot be evaluated on the workload rows.

    An index past the last axis, a number where a shape is needed, an attribute that tensors do not have in a rule: such a
    rule checks nothing, and validators that could use it skip it. Names that have no value yet are not reported, and a row
    that breaks another rule is not checked.

    Bad, `x` has two axes:

    ```yaml
    signature:
      shape_rules:
        - "x.shape[2] % 8 == 0"
        - "y.shape == x.shape"
    ```

    Bad, tensors have a `shape` and `ndim` here, and nothing else:

    ```yaml
    signature:
      shape_rules:
        - "x.numel() > 0"
        - "y.shape == x.shape"
    ```

    Good:

    ```yaml
    signature:
      shape_rules:
        - "x.ndim < 3 or x.shape[2] % 8 == 0"
        - "y.shape == x.shape"
        - "len(Q) == 2"
    ```
    """
    reported: set[Equation] = set()
    for bound in bound_rows(entry):
        for equation, outcome in bound.outcomes if not bound.broken else ():
            if not isinstance(outcome, Failed) or equation in reported or _is_unguarded(entry, bound, equation):
                continue
            if _calls_known(equation):
                reported.add(equation)
                if any(beyond_rank(entry, equation.expression)):
                    continue  # which is SHP112's
                message = f"{stated(equation)} cannot be evaluated: {outcome.error.reason}"
                related = (entry.related(bound.row.node, "the row that it is evaluated on"),)
                place = entry.at(equation.node)
                yield Diagnostic(message, place, related, ops=(entry.name,), severity=Severity.WARNING)


def _calls_known(equation: Equation) -> bool:
    return all(call.name in SHAPE_FUNCTIONS for call in equation.expression.calls())


@rule("WKL203", "row-breaks-constraint", pure=True)
def row_breaks_constraint(entry: OpEntry) -> Iterator[Diagnostic]:
    """A workload row has a dimension with a size that its constraint excludes.

    `constraints` restricts the dimensions of a tensor's `shape` on every call: to sizes, or by `power_of_2`, `even`,
    `positive`, `divisible_by(k)`. The rows must satisfy them; a dimension whose size a row leaves open is not checked.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, N]", constraints: {N: "power_of_2"}}
    workloads:
      - {x_shape: [4, 12], dtypes: [float16], label: "small"}
      - {x_shape: [4, 16], dtypes: [float16], label: "large"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, N]", constraints: {N: "8 | 16", M: "divisible_by(2)"}}
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "small"}
      - {x_shape: [6, 16], dtypes: [float16], label: "large"}
    ```
    """
    for bound in bound_rows(entry):
        for item in excluded_sizes(entry, bound):
            yield _excluded(entry, bound, item)


def _excluded(entry: OpEntry, bound: BoundRow, item: Exclusion) -> Diagnostic:
    message = f"the row gives `{item.dimension}` of `{item.tensor}` the size {item.size}, which its constraint excludes"
    source = bound.source(item.tensor) or bound.source(item.dimension) or bound.row.node
    related = (entry.related(item.node, "the constraint"),)
    return Diagnostic(message, entry.at(source), related, ops=(entry.name,))

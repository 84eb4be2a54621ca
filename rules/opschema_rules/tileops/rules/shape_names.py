"""The names in shape rules: do they mean something, and does somebody read them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.evaluate import SHAPE_FUNCTIONS
from opschema_cli.schema.expression import Expression, Reference
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.presence import tested
from opschema_rules.tileops.signature import (
    bound_names,
    is_complete,
    parsed,
    shape_rules,
    statement,
    static_dims,
    tensor_names,
)
from opschema_rules.tileops.vocabulary import SHAPE_HELPERS, closest, states


@rule("SHP102", "unknown-helper", pure=True)
def unknown_helper(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule calls an unknown function.

    Rules may call a fixed set of functions: Python's own such as `len`, `all` and `isinstance`, and helpers such as
    `broadcast_shapes` and `reduced_shape`. Functions that the tree's own validator, its documents or the modules beside its
    manifest name are known, too. A rule with any other function cannot be evaluated.

    Bad:

    ```yaml
    signature:
      shape_rules:
        - "y.shape == broadcast_shape(x.shape, x.shape)"
    ```

    Good, the helper is defined beside the manifest:

    ```yaml
    signature:
      shape_rules:
        - "y.shape == padded_shape(x.shape, 8)"
    ```

    ```python kit/manifest/shape_rules.py
    def padded_shape(shape, multiple):
        return tuple(-(-size // multiple) * multiple for size in shape)
    ```
    """
    # Before a tree says which helpers it has, those that opschema evaluates are as good as any.
    known = SHAPE_HELPERS if entry.manifest.spec.knows("rule-helpers") else {*SHAPE_HELPERS, *SHAPE_FUNCTIONS}
    for item, expression in shape_rules(entry):
        for name, span in expression.calls():
            if name not in known and not states(entry.manifest.spec, name):
                place = entry.at(entry.inner(item.node, span))
                hint = closest(name, SHAPE_HELPERS)
                yield Diagnostic(
                    f"`{name}()` is not a function that shape rules may call{hint}", place, ops=(entry.name,)
                )


@rule("SHP107", "unbound-name", pure=True)
def unbound_name(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule reads a name that never has a value.

    A rule knows the inputs and outputs, the params, the static dimensions, the dimensions of declared shapes, and the names
    that some rule equates with a known size (`q.shape == (B, S, H, D)` defines four). A rule that reads any other name can
    never be evaluated. Names that have a value in a workload row count as known.

    This is a warning in a tree whose specification does not say what a rule may call: nothing evaluates rules there.

    Bad, `D_head` is meant to be `D`:

    ```yaml
    signature:
      shape_rules:
        - "x.shape == (S, D)"
        - "D_head % 8 == 0"
    ```

    Good, each name is bound in some rule, though not in the one that reads it:

    ```yaml
    signature:
      shape_rules:
        - "S % 8 == 0"
        - "x.shape == (S, 2 * D)"
        - "D > 0"
        - "all(size > 0 for size in x.shape)"
    ```
    """
    if not is_complete(entry):
        return
    bound = {*_given_names(entry), *(name for _, item in shape_rules(entry) for name in bound_names(item))}
    seen: set[str] = set()
    for item, expression in shape_rules(entry):
        for name, span in expression.names():
            if name not in bound and name not in seen and name not in SHAPE_FUNCTIONS:
                seen.add(name)
                place = entry.at(entry.inner(item.node, span))
                message = f"nothing gives `{name}` a value, so the rule can never be evaluated{closest(name, bound)}"
                evaluated = entry.manifest.spec.knows("rule-helpers")
                severity = Severity.ERROR if evaluated else Severity.WARNING
                yield Diagnostic(message, place, ops=(entry.name,), severity=severity)


def _given_names(entry: OpEntry) -> Iterator[str]:
    """Names that have a value without any rule."""
    yield from tensor_names(entry)
    yield from (param.name for param in entry.params)
    yield from (key.value for key, _, _ in static_dims(entry))
    for declaration in statement(entry).declarations.values():
        yield from (symbol.name for symbol in declaration.symbols)
    for row in entry.rows:
        yield from row.data


@rule("SHP108", "unused-symbol", severity="warning", pure=True)
def unused_symbol(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule introduces a name that nothing reads.

    `_k == (kernel_size[0] if isinstance(kernel_size, tuple) else kernel_size)` only defines `_k`; if no other rule, shape,
    constraint or formula reads `_k`, it constrains nothing, and the rule that it was written for is probably missing.
    Dimensions of declared shapes and of tuples (`x.shape == (B, S)`) are documentation and may stand alone.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        stride: {type: int, default: 1}
      shape_rules:
        - "y.shape == x.shape"
        - "_s == (1 if stride is None else stride)"
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        stride: {type: int, default: 1}
      shape_rules:
        - "_s == (1 if stride is None else stride)"
        - "y.shape == (x.shape[0] // _s,)"
        - "x.shape == (B, S)"
    ```
    """
    introduced = [(item, use) for item, expression in shape_rules(entry) for use in _introduces(expression)]
    if not introduced or not is_complete(entry):
        return
    given = set(_given_names(entry))
    reads = [use.name for _, expression in shape_rules(entry) for use in expression.names()]
    reads += [name for text in _other_texts(entry) for name in _names(text)]
    counts = Counter(reads)
    for item, use in introduced:
        if use.name not in given and counts[use.name] == 1:
            place = entry.at(entry.inner(item.node, use.span))
            message = f"nothing reads `{use.name}`, so the rule that defines it checks nothing; use it or drop the rule"
            yield Diagnostic(message, place, ops=(entry.name,), severity=Severity.WARNING)


def _introduces(expression: Expression) -> Iterator[Reference]:
    """The name that a rule ``name == expression`` is about."""
    node = expression.tree
    if isinstance(node, ast.Compare) and [type(sign) for sign in node.ops] == [ast.Eq]:
        sides = [node.left, *node.comparators]
        named = [side for side in sides if isinstance(side, ast.Name)]
        if len(named) == 1:
            yield Reference(named[0].id, expression.span_of(named[0]))


def _other_texts(entry: OpEntry) -> Iterator[str]:
    """Expressions beside the shape rules that may read a name."""
    formulas = entry.get("roofline", "vars")
    nodes = [value for _, value in formulas.pairs()] if formulas is not None else []
    nodes += [node for node in (entry.get("roofline", key) for key in ("flops", "bytes")) if node is not None]
    for tensor in entry.tensors:
        owner = tensor.attribute("constraints")
        nodes += [value for _, value in owner.pairs()] if owner is not None else []
    yield from (node.value for node in nodes if node.kind == "scalar")
    yield from (text for _, _, text in static_dims(entry))


def _names(text: str) -> Sequence[str]:
    expression = parsed(text)
    return [] if expression is None else [use.name for use in expression.names()]


@rule("SHP111", "ambiguous-size", severity="warning", pure=True)
def ambiguous_size(entry: OpEntry) -> Iterator[Diagnostic]:
    """A shape rule reads a name that is a tensor as well as a dimension.

    Rules refer to each tensor by its name. If a declared shape has a dimension with the name of a tensor, `S` in a rule is
    evaluated as the tensor, and arithmetic with it fails, though the size is meant. Rename one of them.

    Dimensions that only declared shapes use may share names with tensors.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[S, D]"}
        S: {dtype: "float32", shape: "[D, D]"}
      shape_rules:
        - "S % 4 == 0"
        - "y.shape == x.shape"
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[S, D]"}
        S: {dtype: "float32", shape: "[D, D]"}
        B: {dtype: "float32", optional: true}
      shape_rules:
        - "S.shape[0] % 4 == 0"
        - "B is None or reduced_axes(S, 0) == reduced_axes(B, 0)"
        - "y.shape == x.shape"
    ```
    """
    both = statement(entry).sizes & tensor_names(entry).keys()
    for item, expression in shape_rules(entry) if both else ():
        tensors = set(_tensor_places(expression))
        for name, span in expression.names():
            if name in both and span.start not in tensors:
                place = entry.at(entry.inner(item.node, span))
                message = (
                    f"`{name}` is a tensor as well as a dimension, and in a rule it is the tensor; rename one of them"
                )
                yield Diagnostic(message, place, ops=(entry.name,), severity=Severity.WARNING)


def _tensor_places(expression: Expression) -> Iterator[int]:
    """Places where a name can only be a tensor: before ``.shape``, in a test for None, as an argument of a function."""
    for node in expression.nodes:
        name = tested(node)
        places: list[ast.expr] = [name] if name is not None else []
        if isinstance(node, ast.Attribute):
            places = [node.value]
        elif isinstance(node, ast.Call):
            places = node.args
        yield from (expression.start_of(place) for place in places if isinstance(place, ast.Name))

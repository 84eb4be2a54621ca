"""Dtype expressions: names that torch knows, references to existing tensors, and the places where promotion is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.schema.dtypes import DtypeProblem, DtypeToken, canonical, is_dtype, parse_dtypes, suggest_dtype
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import set_value
from opschema_cli.suggestions import did_you_mean
from opschema_rules.tileops.drift import yaml_fix
from opschema_rules.tileops.dtypes import (
    dtype_node,
    expression,
    is_close,
    is_spelling_of,
    knows_all_tensors,
    listed_dtypes,
    row_dtypes,
)
from opschema_rules.tileops.entry_parts import Tensor
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS, VALIDATOR


@rule("DTY101", "unknown-dtype", fixable="safe", pure=True, proof=VALIDATOR)
def unknown_dtype(entry: OpEntry) -> Iterator[Diagnostic]:
    """A dtype does not exist in torch.

    Each alternative of a tensor's `dtype` and each item of a row's `dtypes` is the name of a torch dtype (`float16`, not
    `fp16` or `torch.float16`); a tensor may have `same_as(x)` or `promote_int_to_float(x)` instead. Each item of a row is
    one dtype, because the benchmark looks it up in torch. If the tree's validator lists the dtypes that it accepts, that
    list counts.

    The fix writes the full name; it is safe if the spelling is unambiguous.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "fp16 | float32"}
    ```

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | | float32"}
        w: {dtype: "sameas(x)"}
    workloads:
      - {x_shape: [4, 8], dtypes: [float61], label: "small"}
      - {x_shape: [8, 8], dtypes: ["float16 | float32"], label: "large"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16|bfloat16 | float8_e4m3fn"}
        w: {dtype: "same_as( x ) | int8"}
    ```
    """
    for problem in entry.dtypes.problems:
        tensor = entry.dtype_keys[problem.tensor]
        if problem.kind in ("unknown-dtype", "empty", "malformed"):
            yield from _bad_token(entry, tensor, problem)
    listed = listed_dtypes(entry.manifest.spec)
    for tensor in entry.tensors if listed else ():
        for token in expression(tensor).tokens:
            if token.kind == "dtype" and is_dtype(token.name) and token.name not in listed:
                yield _unlisted(entry, f"the dtype of `{tensor.name}`", dtype_node(entry, tensor), token)
    if all(name in listed if listed else is_dtype(name) for row in entry.rows for name in row.dtypes):
        return
    for item in row_dtypes(entry):
        yield from _bad_row_dtype(entry, item, parse_dtypes(item.value).tokens[0], listed)


MAX_REWRITTEN = 2_000
"""Maximum number of characters of a list of dtypes to fix one of them: each fix rewrites the list."""


def _bad_token(entry: OpEntry, tensor: Tensor, problem: DtypeProblem) -> Iterator[Diagnostic]:
    node, token = dtype_node(entry, tensor), problem.token
    text = tensor.dtype or ""
    if not text.strip():
        yield Diagnostic(f"the dtype of `{tensor.name}` is empty", entry.at(node), ops=(entry.name,))
    elif problem.kind == "empty":
        kept = " | ".join(text[t.span.start : t.span.end] for t in parse_dtypes(text).tokens if t.kind != "empty")
        message = f"the dtype of `{tensor.name}` has an empty alternative: `{text}`"
        fix = yaml_fix(entry, f"write `{kept}`", lambda: set_value(entry.file, node, kept)) if kept else None
        yield Diagnostic(message, entry.at(node), fix=fix, ops=(entry.name,))
    elif problem.kind == "malformed":
        hint = f"; did you mean `{problem.suggestion}(…)`?" if problem.suggestion else ""
        message = f"`{token.name}` is neither a dtype nor `same_as(x)` or `promote_int_to_float(x)`{hint}"
        yield Diagnostic(message, entry.at(entry.inner(node, token.span)), ops=(entry.name,))
    else:
        yield _unknown(entry, f"the dtype of `{tensor.name}`", node, token)


def _bad_row_dtype(entry: OpEntry, item: Node, token: DtypeToken, listed: frozenset[str]) -> Iterator[Diagnostic]:
    where = "a row's dtype"
    if "|" in item.value or token.kind != "dtype":
        message = f"`{item.value}` is not one dtype; a row lists each by its name"
        yield Diagnostic(message, entry.at(item), ops=(entry.name,))
    elif not is_dtype(token.name):
        yield _unknown(entry, where, item, token)
    elif listed and token.name not in listed:
        yield _unlisted(entry, where, item, token)


def _unknown(entry: OpEntry, where: str, node: Node, token: DtypeToken) -> Diagnostic:
    best = suggest_dtype(token.name)
    hint = did_you_mean(best)
    message = f"{where} is `{token.name}`, which torch does not have{hint}"
    fix = _renaming(entry, node, token, best) if best else None
    return Diagnostic(message, entry.at(entry.inner(node, token.span)), fix=fix, ops=(entry.name,))


def _unlisted(entry: OpEntry, where: str, node: Node, token: DtypeToken) -> Diagnostic:
    best = canonical(token.name)
    alias = best != token.name
    hint = f"; write `{best}`" if alias else ""
    message = f"{where} is `{token.name}`, which the tree's validator does not accept{hint}"
    fix = _renaming(entry, node, token, best) if alias else None
    return Diagnostic(message, entry.at(entry.inner(node, token.span)), fix=fix, ops=(entry.name,))


def _renaming(entry: OpEntry, node: Node, token: DtypeToken, name: str) -> Fix | None:
    if len(node.value) > MAX_REWRITTEN:
        return None
    text = node.value[: token.span.start] + name + node.value[token.span.end :]
    why = "" if is_spelling_of(token.name, name) else f"`{name}` is only the closest name"
    return yaml_fix(entry, f"write `{name}`", lambda: set_value(entry.file, node, text), why)


@rule("DTY102", "same-as-unknown", fixable="unsafe", pure=True, proof=ROWS)
def same_as_unknown(entry: OpEntry) -> Iterator[Diagnostic]:
    """`same_as(x)` refers to a tensor that the signature does not declare.

    The reference names an input or an output of the same entry; a param has no dtype. Nothing is reported while a part of
    `inputs` or `outputs` is malformed.

    Bad:

    ```yaml
    signature:
      outputs:
        y: {dtype: "same_as(input)"}
    ```

    Bad, misspelt:

    ```yaml
    signature:
      inputs:
        image: {dtype: "float16 | float32"}
      outputs:
        y: {dtype: "same_as(imgae)"}
      shape_rules:
        - "y.shape == image.shape"
    workloads:
      - {image_shape: [4, 8], dtypes: [float16], label: "small"}
      - {image_shape: [8, 8], dtypes: [float32], label: "large"}
    roofline: {flops: "4", bytes: "8"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return image.clone()
    ```

    Good:

    ```yaml
    signature:
      inputs:
        w: {dtype: "same_as(x)"}
        x: {dtype: "float16 | float32"}
      outputs:
        y: {dtype: "same_as(w)"}
    ```
    """
    if not knows_all_tensors(entry):
        return
    for problem in entry.dtypes.problems:
        token, tensor = problem.token, entry.dtype_keys[problem.tensor]
        if (
            problem.kind != "unknown-tensor"
            or token.kind != "same_as"
            or any(t.name == token.name for t in entry.tensors)
        ):
            continue
        node = dtype_node(entry, tensor)
        kind = "is a param, not a tensor" if entry.param(token.name) is not None else "the signature does not declare"
        best = problem.suggestion if problem.suggestion and is_close(token.name, problem.suggestion) else None
        message = f"`{tensor.name}` takes its dtype from `{token.name}`, which {kind}"
        yield Diagnostic(
            message + did_you_mean(best),
            entry.at(entry.inner(node, token.name_span)),
            fix=_redirecting(entry, node, token, best) if best else None,
            ops=(entry.name,),
        )


def _redirecting(entry: OpEntry, node: Node, token: DtypeToken, name: str) -> Fix | None:
    text = node.value[: token.name_span.start] + name + node.value[token.name_span.end :]
    why = f"`{name}` is only the closest name"
    return yaml_fix(entry, f"refer to `{name}`", lambda: set_value(entry.file, node, text), why)


@rule("DTY103", "same-as-cycle", pure=True)
def same_as_cycle(entry: OpEntry) -> Iterator[Diagnostic]:
    """Tensors take their dtype from each other, so none of them has one.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "same_as(w)"}
        w: {dtype: "same_as(x)"}
    ```

    Good, an output that has the name of the input it overwrites:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        y: {dtype: "same_as(x)"}
      outputs:
        y: {dtype: "same_as(y)"}
    ```
    """
    for problem in entry.dtypes.problems:
        if problem.kind == "cycle":
            yield _cycle(entry, problem)


def _cycle(entry: OpEntry, problem: DtypeProblem) -> Diagnostic:
    tensors = [entry.dtype_keys[key] for key in problem.cycle]
    first, node = tensors[0], dtype_node(entry, tensors[0])
    chain = " → ".join(f"`{tensor.name}`" for tensor in tensors)
    if len(problem.cycle) > 2:
        message = f"these take their dtype from each other: {chain}; give one of them a dtype"
    else:
        message = f"`{first.name}` takes its dtype from itself; give it one"
    related = tuple(
        entry.related(dtype_node(entry, tensor), f"the dtype of `{tensor.name}`") for tensor in tensors[1:-1]
    )
    return Diagnostic(message, entry.at(entry.inner(node, problem.token.span)), related, ops=(entry.name,))


@rule("DTY104", "promote-int-to-float", pure=True)
def promote_int_to_float(entry: OpEntry) -> Iterator[Diagnostic]:
    """`promote_int_to_float(x)` is used for an input, or refers to something that is not an input.

    It defines the dtype of an *output*: `float32` if the input `x` is integral, else the dtype of `x`.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "int32 | float16"}
        w: {dtype: "promote_int_to_float(x)"}
    ```

    Bad:

    ```yaml
    signature:
      outputs:
        y: {dtype: "promote_int_to_float(z)"}
        z: {dtype: "int32"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "int32 | float16"}
      outputs:
        y: {dtype: "promote_int_to_float(x) | float64"}
    ```
    """
    for tensor in entry.tensors:
        for token in expression(tensor).tokens:
            if token.kind == "promote_int_to_float":
                yield from _promotion(entry, tensor, token)


def _promotion(entry: OpEntry, tensor: Tensor, token: DtypeToken) -> Iterator[Diagnostic]:
    node = dtype_node(entry, tensor)
    if tensor.direction == "inputs":
        message = f"`{tensor.name}` is an input; `promote_int_to_float` says what an output is"
        yield Diagnostic(message, entry.at(entry.inner(node, token.span)), ops=(entry.name,))
    elif knows_all_tensors(entry) and entry.input(token.name) is None:
        message = f"`promote_int_to_float({token.name})` must refer to an input, and `{token.name}` is not one"
        yield Diagnostic(message, entry.at(entry.inner(node, token.name_span)), ops=(entry.name,))

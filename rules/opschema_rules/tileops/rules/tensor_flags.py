"""Inputs that a caller may omit (`optional`) or that the op writes (`mutated`): where the flags are allowed, and what must not
depend on an input that may be missing. Shape rules and formulas have rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.schema.dtypes import parse_dtypes
from opschema_cli.schema.shapes import parse_shape
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.source.yaml_edit import remove_key
from opschema_rules.tileops.doubtful_keys import is_doubtful
from opschema_rules.tileops.drift import yaml_fix
from opschema_rules.tileops.entry_parts import Tensor
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import VALIDATOR

_WHERE_ELSE = {
    ("optional", "params"): "a param says with `default` that it may be left out",
    ("optional", "outputs"): "outputs are the same on every call",
    ("mutated", "params"): "only a tensor input is written",
    ("mutated", "outputs"): "an output is returned, not written in place",
}


@rule("MAN301", "optional-flag", fixable="safe", pure=True, proof=VALIDATOR)
def optional_flag(entry: OpEntry) -> Iterator[Diagnostic]:
    """`optional` is set on something other than an input, or is not `true`.

    Only a tensor input may be left out of a call. `optional: false` is the same as omitting the key; any other value is
    read as not optional.

    This is checked if the tree's specification mentions `optional`.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5, optional: true}
    ```

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "float16 | float32", optional: false}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "float16 | float32", optional: true}
    ```
    """
    yield from _flag(entry, "optional")


@rule("MAN302", "mutated-flag", fixable="safe", pure=True, proof=VALIDATOR)
def mutated_flag(entry: OpEntry) -> Iterator[Diagnostic]:
    """`mutated` is set on something other than an input, or is not `true`.

    Only a tensor input is written in place; a returned tensor is an output. `mutated: false` is the same as omitting the
    key; any other value is read as not mutated.

    This is checked if the tree's specification mentions `mutated`.

    Bad:

    ```yaml
    signature:
      outputs:
        y: {dtype: "same_as(x)", mutated: true}
    ```

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", mutated: "true"}
    ```

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", mutated: false}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", mutated: true}
    ```
    """
    yield from _flag(entry, "mutated")


def _flag(entry: OpEntry, flag: str) -> Iterator[Diagnostic]:
    if not entry.manifest.spec.knows(flag):
        return
    owners = [(param.name, "params", param.node) for param in entry.params]
    owners += [(tensor.name, tensor.direction, tensor.node) for tensor in entry.tensors]
    for name, section, owner in owners:
        pair = owner.pair(flag)
        if pair is None or is_doubtful(owner, flag):
            continue
        key, value = pair[0], entry.file.document.follow(pair[1])
        if section != "inputs":
            message = f"`{section}.{name}` is marked `{flag}`; {_WHERE_ELSE[flag, section]}, so remove the mark"
            yield Diagnostic(message, entry.at(key), ops=(entry.name,))
        elif not (value.kind == "scalar" and scalar_value(value) is True):
            yield _not_true(entry, name, flag, owner, value)


def _not_true(entry: OpEntry, name: str, flag: str, owner: Node, value: Node) -> Diagnostic:
    written = entry.file.source.text[value.start : value.end] if value.kind == "scalar" else ""
    shown = f"`{written}`" if written else "empty" if value.kind == "scalar" else "not a scalar"
    message = f"`inputs.{name}.{flag}` is {shown}; it must be literal `true`, or be left out"
    off = value.kind == "scalar" and scalar_value(value) is False
    fix = yaml_fix(entry, f"remove `{flag}`", lambda: remove_key(entry.file, owner, flag)) if off else None
    key = owner.pair(flag)
    place = key[0] if key is not None and value.start == value.end else value
    return Diagnostic(message, entry.at(place), fix=fix, ops=(entry.name,))


@rule("MAN303", "optional-reference", pure=True)
def optional_reference(entry: OpEntry) -> Iterator[Diagnostic]:
    """A declaration that holds on every call depends on an input that a call may leave out.

    An input that is not passed has no dtype and no sizes. So no dtype may be `same_as()` it, no row of `dtype_combos` may
    have a column for it, and no other tensor's `shape` may use a dimension that only it binds.

    This is checked if the tree's specification mentions `optional`.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "float16 | float32", optional: true}
      outputs:
        y: {dtype: "same_as(bias)"}
      dtype_combos:
        - {x: float16, bias: float32, y: float32}
    ```

    Bad, a call without `bias` has no `C`:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]"}
        bias: {dtype: "same_as(x)", shape: "[C]", optional: true}
      outputs:
        y: {dtype: "same_as(x)", shape: "[M, C]"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", shape: "[M, K]"}
        bias: {dtype: "same_as(x)", shape: "[K, L, N]", optional: true}
        scale: {dtype: "float32", shape: "[L]", optional: true}
      outputs:
        y: {dtype: "same_as(x)", shape: "[M, K, N]"}
      params:
        N: {type: int}
    ```
    """
    optional = {tensor.name: tensor for tensor in entry.inputs if tensor.optional}
    if optional and entry.manifest.spec.knows("optional"):
        yield from _dtype_references(entry, optional)
        yield from _combo_columns(entry, optional)
        yield from _leaked_symbols(entry, optional)


def _dtype_references(entry: OpEntry, optional: dict[str, Tensor]) -> Iterator[Diagnostic]:
    for tensor in entry.tensors:
        node = tensor.attribute("dtype")
        for token in parse_dtypes(tensor.dtype).tokens if node is not None and tensor.dtype is not None else ():
            if node is not None and token.refers and token.name in optional:
                written = f"{token.kind}({token.name})"
                message = f"`{tensor.name}` takes its dtype from the optional `{token.name}`; a call without it has no `{written}`"
                yield _with_flag(
                    entry, message, entry.inner(entry.file.document.follow(node), token.span), optional[token.name]
                )


def _combo_columns(entry: OpEntry, optional: dict[str, Tensor]) -> Iterator[Diagnostic]:
    combos = entry.get("signature", "dtype_combos")
    for row in combos.items if combos is not None and combos.is_sequence else ():
        for key, _ in entry.file.document.follow(row).pairs():
            if key.kind == "scalar" and key.value in optional:
                message = f"`{key.value}` is optional and so no column of `dtype_combos`: a row holds on every call; remove it"
                yield _with_flag(entry, message, key.span, optional[key.value])


def _leaked_symbols(entry: OpEntry, optional: dict[str, Tensor]) -> Iterator[Diagnostic]:
    bound = {symbol for tensor in entry.inputs if tensor.name not in optional for symbol in _symbols(tensor)}
    bound |= {param.name for param in entry.params}
    static = entry.get("signature", "static_dims")
    bound |= {key.value for key, _ in static.pairs()} if static is not None else set()
    owners: dict[str, Tensor] = {}
    for tensor in optional.values():
        for symbol in _symbols(tensor):
            if symbol not in bound:
                owners.setdefault(symbol, tensor)
    for tensor in entry.tensors:
        if tensor.name in optional and tensor.direction == "inputs":
            continue
        for symbol, span in _symbols(tensor).items():
            if symbol in owners:
                other = owners[symbol].name
                message = f"`{symbol}` in the shape of `{tensor.name}` is bound only by the optional `{other}`"
                yield _with_flag(
                    entry,
                    f"{message}; a call without it has no `{symbol}`",
                    _shape_span(entry, tensor, span),
                    owners[symbol],
                )


def _symbols(tensor: Tensor) -> dict[str, Span]:
    """The dimension names of a shape, each with its first place in the declaration."""
    found: dict[str, Span] = {}
    for name, span in parse_shape(tensor.shape).symbols if tensor.shape is not None else ():
        found.setdefault(name, span)
    return found


def _shape_span(entry: OpEntry, tensor: Tensor, span: Span) -> Span:
    node = tensor.attribute("shape") or tensor.key
    node = entry.file.document.follow(node)
    return entry.inner(node, span) if node.kind == "scalar" else node.span


def _with_flag(entry: OpEntry, message: str, span: Span, owner: Tensor) -> Diagnostic:
    flag = owner.node.pair("optional")
    related = (entry.related(flag[0], f"`{owner.name}` is optional"),) if flag is not None else ()
    return Diagnostic(message, entry.at(span), related, ops=(entry.name,))


@rule("MAN304", "optional-order", pure=True)
def optional_order(entry: OpEntry) -> Iterator[Diagnostic]:
    """A required input follows an optional one.

    The order of `inputs` is the order of `forward()`, which takes each optional input with a default, and in Python a
    parameter with a default cannot precede one without.

    This is checked if the tree's specification says that optional inputs are the trailing ones.

    Bad:

    ```yaml
    signature:
      inputs:
        bias: {dtype: "float16 | float32", optional: true}
        x: {dtype: "float16 | float32"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    ```
    """
    if not entry.manifest.spec.knows("optional-trailing"):
        return
    before: Tensor | None = None
    for tensor in entry.inputs:
        if tensor.optional:
            before = before or tensor
        elif before is not None and not tensor.misstates("optional"):
            message = f"the input `{tensor.name}` is required and follows the optional `{before.name}`; put optional inputs last"
            yield _with_flag(entry, message, tensor.key.span, before)

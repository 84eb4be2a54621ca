"""Dtypes against each other: the rows of `dtype_combos`, and the dtypes that workload rows run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.dtypes import canonical, is_dtype, parse_dtypes, suggest_dtype
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.tileops.doubtful_keys import repeated
from opschema_rules.tileops.drift import row_removal
from opschema_rules.tileops.dtypes import dtype_node, expression, knows_all_tensors, row_dtypes
from opschema_rules.tileops.entry_parts import Tensor
from opschema_rules.tileops.entry_paths import first_line
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.scalars import misreading


class Combo(msgspec.Struct, frozen=True):
    """One row of ``dtype_combos``: its columns by tensor, and the dtype of each where it has one."""

    index: int
    node: Node
    columns: dict[str, tuple[Node, Node]]
    dtypes: dict[str, str]
    merged: bool


@rule("DTY105", "dtype-combos", pure=True)
def dtype_combos(entry: OpEntry) -> Iterator[Diagnostic]:
    """A row of `dtype_combos` is not one dtype for each input.

    Every row is one combination: a column for every required input, and for outputs whose dtype does not follow; each
    column has one dtype, or `same_as(x)` with a column of the same row. A tensor that the signature declares `same_as(x)`
    has the dtype of `x` in every row. `optional-reference` checks columns of optional inputs.

    Bad, `w` has no column and `z` is not a tensor:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        w: {dtype: "float16 | int8"}
      dtype_combos:
        - {x: float16, z: int8}
    ```

    Bad, the columns fix nothing:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        w: {dtype: "same_as(x)"}
      dtype_combos:
        - {x: "float16 | float32", w: 16}
        - {x: float16, w: float32}
        - {x: float61, w: same_as(z)}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        w: {dtype: "same_as(x)"}
        scale: {dtype: "float16 | float32"}
      outputs:
        y: {dtype: "same_as(x)"}
      dtype_combos:
        - {x: float16, w: same_as(x), scale: float32}
        - {x: float32, w: float32, scale: float32, y: float32}
    ```
    """
    combos = list(_combos(entry))
    if not combos:
        return
    complete = knows_all_tensors(entry)
    optional = {tensor.name for tensor in entry.inputs if tensor.optional}
    for combo in combos:
        unknown = dict(_unknown_columns(entry, combo)) if complete else {}
        unclear = repeated(combo.node)
        for name, (key, value) in combo.columns.items():
            if name in unknown:
                yield _unknown_column(entry, key, unknown[name])
            elif name not in optional and name not in unclear:
                yield from _value(entry, combo, name, value)
        missing = [
            tensor.name
            for tensor in entry.inputs
            if not tensor.optional
            and not tensor.misstates("optional")
            and tensor.name not in combo.columns
            and tensor.name not in unknown.values()
        ]
        if missing and complete and not combo.merged:
            message = f"the row has no column for {quoted(missing)}; every input has one"
            yield Diagnostic(message, entry.at(first_line(entry.file, combo.node)), ops=(entry.name,))
        yield from _identities(entry, combo, optional)


def _combos(entry: OpEntry) -> Iterator[Combo]:
    owner = entry.get("signature", "dtype_combos")
    follow = entry.file.document.follow
    for index, row in enumerate(owner.items if owner is not None and owner.is_sequence else ()):
        row = follow(row)
        pairs = [(key, follow(value)) for key, value in row.pairs() if key.kind == "scalar"]
        columns = {key.value: (key, value) for key, value in pairs if key.value != "<<" and misreading(key) is None}
        if row.is_mapping:
            texts = {name: value.value for name, (_, value) in columns.items() if _is_text(value)}
            dtypes = {name: found for name in texts if (found := _pinned(name, texts)) is not None}
            yield Combo(index, row, columns, dtypes, len(columns) < len(row.items) // 2)


def _is_text(node: Node) -> bool:
    return node.kind == "scalar" and isinstance(scalar_value(node), str)


def _pinned(name: str, texts: dict[str, str]) -> str | None:
    """Return the dtype of a column, through ``same_as`` in the row; None if it has none."""
    for _ in range(len(texts)):
        tokens = parse_dtypes(texts.get(name, "")).tokens
        if len(tokens) != 1 or tokens[0].kind not in ("dtype", "same_as"):
            return None
        if tokens[0].kind == "dtype":
            return canonical(tokens[0].name) if is_dtype(tokens[0].name) else None
        name = tokens[0].name
    return None


def _unknown_columns(entry: OpEntry, combo: Combo) -> Iterator[tuple[str, str | None]]:
    """Yield the columns that are not tensors, each with the tensor that was probably meant: one without a column."""
    names = {tensor.name for tensor in entry.tensors}
    free = names - combo.columns.keys()
    unknown = [name for name in combo.columns if name not in names]
    inputs = [tensor.name for tensor in entry.inputs if not tensor.optional and tensor.name in free]
    only = inputs[0] if len(unknown) == len(inputs) == 1 else None
    for name in unknown:
        yield name, only or nearest(name, free, 0.6)


def _unknown_column(entry: OpEntry, key: Node, best: str | None) -> Diagnostic:
    message = f"`{key.value}` is not a tensor of the signature" + did_you_mean(best)
    return Diagnostic(message, entry.at(key), ops=(entry.name,))


def _value(entry: OpEntry, combo: Combo, name: str, value: Node) -> Iterator[Diagnostic]:
    if name in combo.dtypes or misreading(value) is not None:
        return
    text = value.value if _is_text(value) else ""
    tokens = parse_dtypes(text).tokens
    if not text.strip():
        shown = entry.file.source.text[value.start : value.end]
        reason = f"`{shown}` is not the name of a dtype" if shown.strip() else "the column is empty"
    elif len(tokens) > 1:
        reason = f"`{text}` is more than one dtype; write a row for each"
    elif tokens[0].kind == "promote_int_to_float":
        reason = f"`{text}` may be more than one dtype; write a row for each"
    elif tokens[0].kind == "same_as":
        ref = tokens[0].name
        reason = f"`{text}` leads to no dtype, because " + (
            "it leads back to itself" if ref in combo.columns else f"the row has no `{ref}`"
        )
        if ref in combo.columns and not _leads_back(name, combo):
            return  # the fault is in the column it refers to
    else:
        best = suggest_dtype(text)
        reason = f"`{text}` is not a dtype of torch" + did_you_mean(best)
    yield Diagnostic(
        f"`{name}` has no dtype in this row: {reason}", entry.at(first_line(entry.file, value)), ops=(entry.name,)
    )


def _leads_back(name: str, combo: Combo) -> bool:
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        value = combo.columns.get(name)
        tokens = parse_dtypes(value[1].value).tokens if value is not None else ()
        if len(tokens) != 1 or tokens[0].kind != "same_as":
            return False
        name = tokens[0].name
    return True


def _identities(entry: OpEntry, combo: Combo, optional: set[str]) -> Iterator[Diagnostic]:
    for tensor in entry.tensors:
        ref = _same_as(tensor)
        column, other = combo.columns.get(tensor.name), combo.columns.get(ref or "")
        if ref is None or column is None or ref in optional or tensor.name in optional or ref == tensor.name:
            continue
        declared = entry.related(dtype_node(entry, tensor), f"`{tensor.name}` is `same_as({ref})`")
        if other is None:
            if not combo.merged and any(item.name == ref and item.direction == "outputs" for item in entry.tensors):
                message = f"`{tensor.name}` is `same_as({ref})`, and the row has no column for `{ref}`"
                yield Diagnostic(message, entry.at(column[0]), (declared,), ops=(entry.name,))
            continue
        here, there = combo.dtypes.get(tensor.name), combo.dtypes.get(ref)
        if here and there and here != there:
            message = f"`{tensor.name}` is `{here}` and `{ref}` is `{there}`, but `{tensor.name}` is declared `same_as({ref})`"
            yield Diagnostic(
                message, entry.at(column[1]), (declared, entry.related(other[1], f"`{ref}` here")), ops=(entry.name,)
            )


def _same_as(tensor: Tensor) -> str | None:
    tokens = expression(tensor).tokens
    return tokens[0].name if len(tokens) == 1 and tokens[0].kind == "same_as" else None


@rule("DTY106", "combo-outside-union", pure=True)
def combo_outside_union(entry: OpEntry) -> Iterator[Diagnostic]:
    """A row of `dtype_combos` assigns a dtype that the tensor's own `dtype` does not list.

    The combinations are a subset of the product of the declared unions; a row cannot add a dtype.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
      dtype_combos:
        - {x: bfloat16, y: bfloat16}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "int32 | float16"}
      outputs:
        y: {dtype: "promote_int_to_float(x)"}
      dtype_combos:
        - {x: int32, y: float32}
        - {x: float16, y: float16}
    ```
    """
    for combo in _combos(entry):
        for tensor in entry.tensors:
            dtype, allowed = combo.dtypes.get(tensor.name), entry.dtypes.dtypes.get(tensor.name)
            if dtype is None or allowed is None or dtype in allowed or _same_as(tensor) in combo.columns:
                continue
            message = f"`{tensor.name}` cannot be `{dtype}`: its dtype is `{tensor.dtype}`"
            related = (entry.related(dtype_node(entry, tensor), "the declared dtypes"),)
            yield Diagnostic(message, entry.at(combo.columns[tensor.name][1]), related, ops=(entry.name,))


@rule("DTY107", "workload-dtype", pure=True)
def workload_dtype(entry: OpEntry) -> Iterator[Diagnostic]:
    """A workload row runs a dtype that no tensor of the op can have.

    A row's `dtypes` set the op's main dtype: that of the first input, of another one or of the output. So a dtype is wrong
    only if no tensor's `dtype` allows it, or if `dtype_combos` lists the supported combinations and none of them has it.
    Entries with an unresolved dtype, and entries with a param of type dtype, are not checked.

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [bfloat16], label: "small"}
      - {x_shape: [8, 8], dtypes: [float16], label: "large"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "bool"}
        scale: {dtype: "float16 | float32"}
    ```
    """
    known = entry.dtypes.dtypes
    if not known or len(known) < len(entry.tensors) or not knows_all_tensors(entry):
        return
    if any("dtype" in (param.type or "dtype") for param in entry.params):
        return
    combos = list(_combos(entry))
    if combos and all(combo.columns.keys() == combo.dtypes.keys() and not combo.merged for combo in combos):
        free = [name for name in known if any(name not in combo.columns for combo in combos)]
        allowed = {dtype for combo in combos for dtype in combo.dtypes.values()}
        allowed |= {dtype for name in free if _same_as(entry.dtype_keys[name]) is None for dtype in known[name]}
        reason, at = (
            "no row of `dtype_combos` has it; add the combination, or drop the dtype",
            entry.key_of("signature", "dtype_combos"),
        )
    else:
        allowed = {dtype for dtypes in known.values() for dtype in dtypes}
        first = next(iter(entry.tensors))
        reason, at = "no tensor of the op can have it", dtype_node(entry, first)
    if all(canonical(name) in allowed for row in entry.rows for name in row.dtypes):
        return
    for item in row_dtypes(entry):
        if is_dtype(item.value) and canonical(item.value) not in allowed:
            related = (entry.related(at, "its possible dtypes"),) if at is not None else ()
            yield Diagnostic(f"the row runs `{item.value}`, but {reason}", entry.at(item), related, ops=(entry.name,))


@rule("DTY108", "duplicate-combo", fixable="safe", pure=True, proof=ROWS)
def duplicate_combo(entry: OpEntry) -> Iterator[Diagnostic]:
    """Two rows of `dtype_combos` list the same combination.

    The rows are a set: a repeated row adds nothing, and another combination was probably meant. Rows are compared by the
    dtypes that they assign, with `same_as(x)` and aliases of dtypes resolved; the order of columns does not matter. Rows
    with a column that has no dtype are not compared.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        w: {dtype: "float16 | int8"}
      dtype_combos:
        - {x: float16, w: int8}
        - {x: float32, w: int8}
        - {w: int8, x: float16}
    ```

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        w: {dtype: "float16 | float32"}
      dtype_combos:
        - {x: float16, w: float16}
        - {x: float16, w: same_as(x)}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        w: {dtype: "float16 | float32"}
      dtype_combos:
        - {x: float16, w: float32}
        - {x: float32, w: float16}
        - {x: float16, w: same_as(x)}
        - {x: float32, w: same_as(x)}
    ```
    """
    owner = entry.get("signature", "dtype_combos")
    first: dict[frozenset[tuple[str, str]], Node] = {}
    for combo in _combos(entry):
        if owner is None or combo.merged or not combo.columns or combo.columns.keys() != combo.dtypes.keys():
            continue
        item = owner.items[combo.index]
        earlier = first.setdefault(frozenset(combo.dtypes.items()), item)
        if earlier is not item:
            related = (entry.related(first_line(entry.file, earlier), "the first one"),)
            place = entry.at(first_line(entry.file, item))
            fix = row_removal(entry, owner, combo.index)
            message = "the row repeats another combination; drop it, or correct what was meant"
            yield Diagnostic(message, place, related, fix, (entry.name,))

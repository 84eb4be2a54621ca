"""The values of workload rows by themselves: can a param, a shape or a label have them."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import quote_scalar
from opschema_cli.source.yaml_scalars import plain_value
from opschema_rules.tileops.drift import short, yaml_fix
from opschema_rules.tileops.entry_parts import ParamDecl, Row, Tensor
from opschema_rules.tileops.entry_paths import first_line, shown
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.param_types import admits, type_problem
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.row_nodes import given, holds_misread
from opschema_rules.tileops.scalars import misreading


@rule("WKL107", "workload-label", fixable="safe", pure=True, proof=ROWS)
def workload_label(entry: OpEntry) -> Iterator[Diagnostic]:
    """YAML reads a row's label as something other than its text.

    Benchmarks put the label into the names of their cases, so `1.10` becomes `1.1`, because it is a number, and `~` becomes
    `None`. A row without a label must omit `label`. `yaml11-scalar` reports what YAML 1.1 misreads, and
    `manifest-structure` a label of another type. An empty label is a warning.

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: 1.10}
      - {x_shape: [8, 8], dtypes: [float16], label: 4_096}
    ```

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: ~}
      - {x_shape: [8, 8], dtypes: [float16], label: " "}
    ```

    Good:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "1.10"}
      - {x_shape: [8, 8], dtypes: [float16], label: 4096}
      - {x_shape: [8, 9], dtypes: [float16], label: 1.5}
      - {x_shape: [9, 9], dtypes: [float16]}
    ```
    """
    for row in entry.rows:
        written = row.value("label")
        if written is None or written.kind != "scalar" or written.tag or misreading(written) is not None:
            continue
        label = entry.data_of(written)
        place = entry.at(written if written.start < written.end else _key(row, "label"))
        if label is None or (isinstance(label, str) and not label.strip()):
            called = "is called `None`" if label is None else "has a name that nobody sees"
            message = f"the label is {shown(entry.file, written)}, so the row {called}; name it, or drop `label`"
            yield Diagnostic(message, place, ops=(entry.name,), severity=Severity.WARNING)
        elif isinstance(label, int | float) and not isinstance(label, bool) and str(label) != written.value:
            message = f"the label `{written.value}` is the number {label}, and that is what the row is called; quote it"
            yield Diagnostic(message, place, fix=_quoted(entry, written), ops=(entry.name,))


def _key(row: Row, key: str) -> Node:
    pair = row.node.pair(key)
    return pair[0] if pair is not None else row.node


def _quoted(entry: OpEntry, node: Node) -> Fix | None:
    return yaml_fix(entry, f"quote `{node.value}`", lambda: quote_scalar(entry.file, node))


@rule("WKL108", "row-value-type", pure=True)
def row_value_type(entry: OpEntry) -> Iterator[Diagnostic]:
    """A value in a workload row has the wrong type.

    Benchmarks construct the op from the row and create tensors of its shapes. So the value for a param must have the param's type,
    with the same conversions as for defaults (`param-default-type`): a list for a tuple, an `int` for a `float`, text for a
    dtype. Types that are only partly known are not checked. `{tensor}_shape` must be a list of sizes, integers from 0 up. Other
    keys, such as the aggregate `kv_shape`, may have any value.

    Shapes that are not lists are reported only if the tree's specification derives the keys of rows from the signature; negative
    and fractional sizes are always reported. `null` for an optional input's shape is not checked.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        kernel_size: {type: "int | tuple[int, int]"}
        ceil_mode: {type: bool, default: false}
    workloads:
      - {x_shape: [4, 8], kernel_size: "5", dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], kernel_size: 3, ceil_mode: "yes", dtypes: [float16], label: "large"}
    ```

    Bad:

    ```yaml
    workloads:
      - {x_shape: [2, -3], dtypes: [float16], label: "small"}
      - {x_shape: [2, "n"], dtypes: [float16], label: "large"}
      - {x_shape: 1024, dtypes: [float16], label: "flat"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
      params:
        eps: {type: float}
        kernel_size: {type: "int | tuple[int, int] | None"}
        mode: {type: str, default: "constant"}
        out_dtype: {type: "torch.dtype | None", default: null}
        reduction: {type: "Reduction | int", default: 0}
    workloads:
      - {x_shape: [4, 8], eps: 1, kernel_size: [3, 3], mode: reflect, dtypes: [float16], label: "small"}
      - {x_shape: [], eps: 0.5, kernel_size: null, out_dtype: float32, reduction: mean, dtypes: [float16], label: "scalar"}
      - {x_shape: [0, 8], bias_shape: [8], eps: .inf, kernel_size: 3, kv_shape: [n, -1], dtypes: [float16], label: "free"}
    ```
    """
    params = {param.name: param for param in entry.params}
    tensors = {f"{tensor.name}_shape": tensor for tensor in entry.tensors}
    for row in entry.rows:
        for key, node in given(entry, row):
            if key in params:
                yield from _param_value(entry, row, params[key], node)
            elif key in tensors:
                yield from _shape(entry, row, tensors[key], node)


# Params.


def _param_value(entry: OpEntry, row: Row, param: ParamDecl, node: Node) -> Iterator[Diagnostic]:
    stated, value = param.type, row.data[param.name]
    if stated is None or param.doubtful("type") or type_problem(stated) is not None:
        return
    if value is None and param.has_default and param.default is None:
        return  # the type is too narrow for the default too, which is MAN202's
    if admits(stated, value) is not False or holds_misread(entry, ("workloads", row.index, param.name), node):
        return
    message = (
        f"the row gives `{param.name}` the value `{_written(entry, node)}`, which its type `{stated}` does not admit"
    )
    declared = param.node.get("type")
    related = (entry.related(declared, "the type"),) if declared is not None else ()
    yield Diagnostic(
        message + _advice(param, entry.file.document.follow(node), value),
        entry.at(first_line(entry.file, node) if node.start < node.end else _key(row, param.name).span),
        related,
        ops=(entry.name,),
    )


def _written(entry: OpEntry, node: Node) -> str:
    return short(entry.file.source.text[node.start : node.end]) or "null"


def _advice(param: ParamDecl, node: Node, value: Data) -> str:
    """Return advice on what to write instead, if that is clear."""
    if value is None and param.has_default:
        return "; leave the key out for the default"
    meant = plain_value(node.value) if node.style in ("'", '"') else value
    unquoted = meant != value and param.type is not None and admits(param.type, meant) is True
    return f"; write `{node.value}` without quotes" if unquoted else ""


# Shapes.


def _shape(entry: OpEntry, row: Row, tensor: Tensor, node: Node) -> Iterator[Diagnostic]:
    key, strict = f"{tensor.name}_shape", entry.manifest.spec.knows("workload-keys")
    data, target = row.data[key], entry.file.document.follow(node)
    if isinstance(data, list):
        if not all(isinstance(item, list) for item in data):  # else perhaps the shapes of several tensors
            yield from _sizes(entry, row, tensor, target, data)
    elif strict and not (data is None and (tensor.optional or tensor.misstates("optional"))) and not target.tag:
        hint = f"; write `[{data}]`" if type(data) is int and data >= 0 else ""
        message = f"`{key}` is {shown(entry.file, target)}; a row gives a shape as a list of sizes" + (
            hint or ", `[4, 8]`"
        )
        place = first_line(entry.file, node) if node.start < node.end else _key(row, key).span
        yield Diagnostic(message, entry.at(place), (entry.related(tensor.key, "the tensor"),), ops=(entry.name,))


def _sizes(entry: OpEntry, row: Row, tensor: Tensor, node: Node, data: list[Data]) -> Iterator[Diagnostic]:
    key, strict = f"{tensor.name}_shape", entry.manifest.spec.knows("workload-keys")
    for item, size in zip(node.items, data, strict=True):
        wrong = strict or isinstance(size, float) or (type(size) is int)
        if (type(size) is int and size >= 0) or not wrong or holds_misread(entry, ("workloads", row.index, key), item):
            continue
        number = plain_value(size) if isinstance(size, str) else None
        hint = f"; write `{number}` without quotes" if type(number) is int and number >= 0 else ""
        message = f"`{key}` has the size `{_written(entry, item)}`; a size is an integer from 0 up{hint}"
        related = (entry.related(tensor.key, "the tensor"),)
        yield Diagnostic(message, entry.at(item if item.start < item.end else node), related, ops=(entry.name,))

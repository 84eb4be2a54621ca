"""Workload rows as benchmarks count them: are there enough, do they repeat, do they give what a call needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import remove_item
from opschema_rules.tileops.drift import names, yaml_fix
from opschema_rules.tileops.model import OpEntry, ParamDecl, Row


@rule("WKL101", "workload-count", pure=True)
def workload_count(entry: OpEntry) -> Iterator[Diagnostic]:
    """An implemented op has too few workload rows.

    The rows are what benchmarks measure; an op without any is never measured, though its status says that it works. Where the
    tree's specification demands two rows, one is not enough.

    Bad:

    ```yaml
    workloads: []
    ```

    Bad, where the specification demands two:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "small"}
    ```

    Good, nothing is measured before it is implemented:

    ```yaml
    status: spec-only
    workloads: []
    ```
    """
    node = entry.get("workloads")
    if not entry.implemented or node is None or not node.is_sequence:
        return
    count = len(node.items)
    least = 2 if entry.manifest.spec.knows("two-workloads") else 1
    if count < least:
        key = entry.key_of("workloads") or node
        rows = "no workload row" if count == 0 else "one workload row"
        message = f"the implemented op has {rows}; it needs {'one' if least == 1 else 'two'}"
        yield Diagnostic(message, entry.at(key), ops=(entry.name,))


@rule("WKL102", "workload-missing-param", pure=True)
def workload_missing_param(entry: OpEntry) -> Iterator[Diagnostic]:
    """A workload row gives no value to a param that has no default.

    Benchmarks construct the op from the row, so each param without a default must be in it.

    Holds where the tree's specification demands it.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float}
    ```

    Good, one row takes the default:

    ```yaml
    signature:
      params:
        eps: {type: float}
        scale: {type: float, default: 1.0}
    workloads:
      - {x_shape: [4, 8], eps: 0.5, dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], eps: 0.5, scale: 2.0, dtypes: [float16], label: "scaled"}
    ```
    """
    required = list(_required(entry)) if entry.manifest.spec.knows("required-params") else []
    for row in entry.rows:
        missing = [param for param in required if param.name not in row.data]
        if missing:
            related = tuple(entry.related(param.key, f"`{param.name}` has no default") for param in missing)
            message = (
                f"the row gives no value to {names(param.name for param in missing)}, which the op cannot do without"
            )
            yield Diagnostic(message, entry.at(row.node), related, ops=(entry.name,))


def _required(entry: OpEntry) -> Iterator[ParamDecl]:
    """Params without a default of their own or by a merge."""
    for param in entry.params:
        attributes = entry.data_of(param.node)
        if isinstance(attributes, dict) and "default" not in attributes and param.name != "<<":
            yield param


@rule("WKL105", "optional-coverage", pure=True)
def optional_coverage(entry: OpEntry) -> Iterator[Diagnostic]:
    """The rows never pass an optional input, or never leave it out.

    Each optional input doubles what the op must do. At least one row passes it, by `{input}_shape`, and one leaves it out;
    else one half is never run.

    Holds where the tree's specification knows optional inputs; a `spec-only` entry is free of it.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "plain"}
      - {x_shape: [4, 8], bias_shape: [8], dtypes: [float16], label: "biased"}
    ```
    """
    if not entry.rows or entry.status == "spec-only" or not entry.manifest.spec.knows("optional"):
        return
    for tensor in entry.inputs:
        key = f"{tensor.name}_shape"
        passed = [key in row.data for row in entry.rows]
        if tensor.optional and not any(passed):
            message = f"no workload row passes the optional input `{tensor.name}`; add one with `{key}`"
            yield Diagnostic(message, entry.at(tensor.key), ops=(entry.name,))
        elif tensor.optional and all(passed):
            message = f"every workload row passes the optional input `{tensor.name}`; add one without `{key}`"
            yield Diagnostic(message, entry.at(tensor.key), ops=(entry.name,))


@rule("WKL106", "duplicate-row", fixable="safe", pure=True)
def duplicate_row(entry: OpEntry) -> Iterator[Diagnostic]:
    """Two workload rows measure the same thing.

    A row that repeats another, in every value, only runs the benchmark a second time, under a name that is taken. A row that
    differs in nothing but its label is a warning: it costs a run, and its name promises a difference that is not there. Rows
    that list different dtypes are different.

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], dtypes: [float16], label: "large"}
      - {x_shape: [4, 8], dtypes: [float16], label: "small"}
    ```

    Bad, only the label differs:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16, bfloat16], label: "decode"}
      - {x_shape: [4, 8], dtypes: [bfloat16, float16], label: "short"}
    ```

    Good:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "small"}
      - {x_shape: [4, 8], dtypes: [float32], label: "small"}
      - {x_shape: [4, 8], eps: 1, dtypes: [float16], label: "one"}
      - {x_shape: [4, 8], eps: true, dtypes: [float16], label: "true"}
    ```
    """
    seen: dict[Hashable, Row] = {}
    for row in entry.rows:
        first = seen.setdefault(_measured(row), row)
        if first is row:
            continue
        place = entry.at(_item(entry, row))
        related = (entry.related(_item(entry, first), "the first one"),)
        label = first.data.get("label")
        if row.data.get("label") == label:
            yield Diagnostic("the row repeats another one; drop it", place, related, _drop(entry, row), (entry.name,))
        else:
            name = f"`{label}`" if isinstance(label, str) else f"row {first.index + 1}"
            message = f"the row measures what {name} measures; only their labels differ"
            yield Diagnostic(message, place, related, ops=(entry.name,), severity=Severity.WARNING)


def _item(entry: OpEntry, row: Row) -> Node:
    """A row as its list has it: where an alias stands for the row, the alias."""
    owner = entry.get("workloads")
    return owner.items[row.index] if owner is not None else row.node


def _measured(row: Row) -> Hashable:
    """What a row measures, with 1 and true apart; the order of keys and dtypes does not count."""
    data: dict[Data, Data] = {key: value for key, value in row.data.items() if key != "label"}
    dtypes = data.get("dtypes")
    if isinstance(dtypes, list) and len(row.dtypes) == len(dtypes):
        data["dtypes"] = [*sorted(row.dtypes)]
    return _frozen(data)


def _frozen(value: Data) -> Hashable:
    if isinstance(value, dict):
        return frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return type(value), value


def _drop(entry: OpEntry, row: Row) -> Fix | None:
    owner = entry.get("workloads")
    item = _item(entry, row)
    if owner is None or "#" in entry.file.source.text[item.start : item.end]:
        return None  # a comment would go with it
    fix = yaml_fix(entry, "drop the row", lambda: remove_item(entry.file, owner, row.index))
    if fix is not None and any("#" in entry.file.source.text[slice(*item.edit.span)] for item in fix.edits):
        return msgspec.structs.replace(fix, safety="unsafe", why_unsafe="the comment above the row goes with it")
    return fix

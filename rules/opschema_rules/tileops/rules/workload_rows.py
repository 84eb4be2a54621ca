"""Workload rows as benchmarks count them: their number, repetitions, and the values that a call needs."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Data, Node
from opschema_rules.tileops.bindings import RESERVED_KEYS
from opschema_rules.tileops.drift import names, row_removal
from opschema_rules.tileops.dtypes import knows_all_tensors
from opschema_rules.tileops.entry_parts import ParamDecl, Row, Tensor
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.stray_keys import misspelt


@rule("WKL101", "workload-count", pure=True)
def workload_count(entry: OpEntry) -> Iterator[Diagnostic]:
    """An implemented op has too few workload rows.

    The rows are what benchmarks measure; an op without rows is never measured, though its status says that it works. If the
    tree's specification requires two rows, one is not enough.

    Bad:

    ```yaml
    workloads: []
    ```

    Bad, if the specification requires two:

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
    if not entry.implemented or node is None or not node.is_sequence or entry.doubtful("workloads"):
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

    This is checked if the tree's specification requires it.

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
        known = misspelt(entry, row) if missing else ()
        missing = [param for param in missing if param.name not in known]
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
        lacking = isinstance(attributes, dict) and "default" not in attributes and not param.doubtful("default")
        if lacking and param.name != "<<":
            yield param


def _incomplete(entry: OpEntry) -> Iterator[tuple[Tensor, Row, Row]]:
    """Yield inputs, rows without their shape, and rows that have it and nothing else in addition."""
    if len(entry.inputs) < 2 or not knows_all_tensors(entry):
        return
    for tensor in entry.inputs:
        key = f"{tensor.name}_shape"
        having = [row for row in entry.rows if key in row.data]
        if not 0 < len(having) < len(entry.rows) or tensor.optional or tensor.misstates("optional"):
            continue
        for row in (row for row in entry.rows if key not in row.data):
            model = next((other for other in having if _has_no_other_key(entry, row, other)), None)
            if model is not None:
                yield tensor, row, model


@rule("WKL109", "workload-missing-shape", candidates=_incomplete)
def workload_missing_shape(entry: OpEntry) -> Iterator[Diagnostic]:
    """A workload row omits the shape of an input that the other rows give.

    An op with several inputs takes their shapes from the row under the keys that its benchmark reads, `{input}_shape` or an
    aggregate such as `kv_shape`. A row that lacks `{input}_shape` of a required input, and has no other key in its place,
    does not define that input: the benchmark fails on this row, or measures another call. Not checked are inputs for which
    no row has the key, and rows if the benchmark first tests whether the key exists (`row.get("weight_shape")`). For an op
    with a single input, `workload-keys` reports this.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        weight: {dtype: "same_as(x)"}
    workloads:
      - {x_shape: [4, 8], weight_shape: [8], dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], dtypes: [float16], label: "large"}
    ```

    Good, `kv_shape` is for both, and `bias` may be omitted:

    ```yaml
    signature:
      inputs:
        q: {dtype: "float16 | float32"}
        k: {dtype: "same_as(q)"}
        v: {dtype: "same_as(q)"}
        bias: {dtype: "same_as(q)", optional: true}
    workloads:
      - {q_shape: [4, 8], k_shape: [4, 8], v_shape: [4, 8], bias_shape: [8], dtypes: [float16], label: "split"}
      - {q_shape: [4, 8], kv_shape: [4, 8], dtypes: [float16], label: "joint"}
    ```
    """
    for tensor, row, model in _incomplete(entry):
        key = f"{tensor.name}_shape"
        if not _asks_for(entry, key):
            message = (
                f"the row has no `{key}`, which the other rows have: it does not describe the input `{tensor.name}`"
            )
            pair = model.node.pair(key)
            shown = pair[0] if pair is not None else model.node
            related = (entry.related(shown, "given here"), entry.related(tensor.key, "a required input"))
            yield Diagnostic(message, entry.at(row.node), related, ops=(entry.name,))


def _has_no_other_key(entry: OpEntry, row: Row, other: Row) -> bool:
    """Whether a row only has params, inputs' shapes and keys that another row has too."""
    known = {*other.data, *RESERVED_KEYS, *(param.name for param in entry.params)}
    known |= {f"{tensor.name}_shape" for tensor in entry.inputs}
    return all(key in known or key.startswith("__") for key in row.data)


def _asks_for(entry: OpEntry, key: str) -> bool:
    """Whether the benchmark reads a key of a row only if it is there."""
    asking = re.compile(rf"""get\(\s*["']{re.escape(key)}["']|["']{re.escape(key)}["']\s+(?:not\s+)?in\b""")
    manifest = entry.manifest
    paths = (manifest.locate(path) for _, path in entry.source_paths("bench"))
    sources = (manifest.project.source(path) for path in paths if path is not None)
    return any(source is not None and asking.search(source.text) for source in sources)


@rule("WKL105", "optional-coverage", pure=True)
def optional_coverage(entry: OpEntry) -> Iterator[Diagnostic]:
    """The rows never pass an optional input, or never omit it.

    Each optional input doubles what the op must do. At least one row must pass it, by `{input}_shape`, and one must omit
    it; otherwise one case is never run.

    This is checked if the tree's specification mentions optional inputs; `spec-only` entries are not checked.

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


@rule("WKL106", "duplicate-row", fixable="safe", pure=True, proof=ROWS)
def duplicate_row(entry: OpEntry) -> Iterator[Diagnostic]:
    """Two workload rows measure the same thing.

    A row that repeats all values of another only runs the benchmark a second time, under a name that is already used. A row
    that differs only in its label is a warning: it costs a run, and its name suggests a difference that does not exist.
    Rows that list different dtypes are different.

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
    """Return a row as its list contains it: for an aliased row, the alias."""
    owner = entry.get("workloads")
    return owner.items[row.index] if owner is not None else row.node


def _measured(row: Row) -> Hashable:
    """The measurement of a row, as a key; 1 and true differ, the order of keys and dtypes does not count."""
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
    return row_removal(entry, owner, row.index) if owner is not None else None

"""Workload rows as benchmarks read them: how many there are, what their keys and labels say, and whether they repeat."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import remove_item, rename_key, set_value
from opschema_rules.tileops.bindings import RESERVED_KEYS
from opschema_rules.tileops.drift import names, yaml_fix
from opschema_rules.tileops.model import OpEntry, ParamDecl, Row, Tensor


@rule("WKL101", "workload-count")
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


@rule("WKL102", "workload-missing-param")
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
            message = f"the row gives no value to {names(param.name for param in missing)}, which the op cannot do without"
            yield Diagnostic(message, entry.at(row.node), related, ops=(entry.name,))


def _required(entry: OpEntry) -> Iterator[ParamDecl]:
    """Params without a default of their own or by a merge."""
    for param in entry.params:
        attributes = entry.data_of(param.node)
        if isinstance(attributes, dict) and "default" not in attributes and param.name != "<<":
            yield param


@rule("WKL103", "workload-label-dtype", fixable="safe")
def workload_label_dtype(entry: OpEntry) -> Iterator[Diagnostic]:
    """A row's label names a dtype that the row lists.

    A benchmark case is called by its label and the dtype that it runs, so `llama-8b-fp16` becomes `llama-8b-fp16-float16`; and
    a row with two dtypes runs one of them under the name of the other. Short forms count: `fp16`, `bf16`, `f32`, `e4m3`, `i8`.
    A dtype that the row does not list may stand for something else, such as the dtype of a cache.

    The fix takes the dtype out of the label; it is safe as long as no other row of the op would run a dtype under the same
    label.

    Holds where the tree's specification demands it.

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "small-fp16"}
      - {x_shape: [8, 8], dtypes: [float16, bfloat16], label: "large"}
    ```

    Good, the row runs no `fp8`:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "paged-fp8-cache"}
      - {x_shape: [8, 8], dtypes: [float16], label: "llama-8b-s16"}
    ```
    """
    if not entry.manifest.spec.knows("label-dtype"):
        return
    for row in entry.rows:
        label, node = row.data.get("label"), row.value("label")
        found = _dtype_in(label, row.dtypes) if isinstance(label, str) else None
        if isinstance(label, str) and found is not None and node is not None:
            node = entry.file.document.follow(node)
            token = label[found.start : found.end]
            message = f"the label names `{token}`, which `dtypes` lists; the dtype is part of the case's name anyway"
            listed = row.value("dtypes")
            related = (entry.related(listed, "listed here"),) if listed is not None else ()
            place = entry.at(entry.inner(node, found))
            yield Diagnostic(message, place, related, _bare_label(entry, row, node, label), (entry.name,))


def _dtype_in(label: str, dtypes: Iterable[str]) -> Span | None:
    """Where a label spells one of the dtypes."""
    for dtype in dtypes:
        match = _spelling(dtype).search(label)
        if match is not None:
            return Span(*match.span())
    return None


@lru_cache(maxsize=256)
def _spelling(dtype: str) -> re.Pattern[str]:
    """Finds the ways in which a label can spell a dtype, the longest first."""
    tokens = {dtype}
    match = re.fullmatch(r"(b?float)(\d+)(?:_(\w+))?", dtype)
    if match:
        kind, bits, variant = match.groups()
        tokens |= {f"{'bf' if kind == 'bfloat' else 'fp'}{bits}", f"f{bits}", f"{kind}{bits}"}
        tokens |= {variant, variant.removesuffix("fn")} if variant else set()
    match = re.fullmatch(r"(u?)int(\d+)", dtype)
    if match:
        tokens.add(f"{match[1]}i{match[2]}")
    words = "|".join(re.escape(token) for token in sorted(tokens - {""}, key=len, reverse=True))
    return re.compile(rf"(?<![a-z0-9])(?:{words})(?![a-z0-9])")


def _bare_label(entry: OpEntry, row: Row, node: Node, label: str) -> Fix | None:
    """Take the dtypes out of a label, with one separator each."""
    bare = _without_dtypes(label, row.dtypes)
    if not bare or _dtype_in(bare, row.dtypes) is not None:
        return None
    clash = any(
        _without_dtypes(str(other.data.get("label")), other.dtypes) == bare and set(other.dtypes) & set(row.dtypes)
        for other in entry.rows
        if other is not row
    )
    why = "another row would run the same dtype under the same label" if clash else ""
    return yaml_fix(entry, f"call the row `{bare}`", lambda: set_value(entry.file, node, bare), why)


def _without_dtypes(label: str, dtypes: Sequence[str]) -> str:
    for _ in range(len(label)):
        found = _dtype_in(label, dtypes)
        if found is None:
            break
        head, tail = label[: found.start], label[found.end :]
        head, tail = (head[:-1], tail) if head[-1:] in tuple("-_ ./") else (head, tail[tail[:1] in tuple("-_ ./") :])
        label = head + tail
    return label


@rule("WKL104", "workload-keys", fixable="unsafe")
def workload_keys(entry: OpEntry) -> Iterator[Diagnostic]:
    """The keys of a row do not derive from the signature.

    For an op with one tensor input, a row is read by name: `{input}_shape` is the input's shape, `dtypes` and `label` are what
    they say, and every other key is a param. A key that is none of these reaches nobody, and a shape under another name is
    read by hand-written code only. Keys that begin with `__` are free, and so are the keys of ops with several inputs, whose
    families agree on aggregate shapes such as `kv_shape`.

    The fix renames a shape key; it is unsafe because a benchmark may still read the old one.

    Holds where the tree's specification derives the keys from the signature.

    Bad:

    ```yaml
    workloads:
      - {input_shape: [4, 8], dtypes: [float16], label: "small"}
      - {input_shape: [8, 8], dtypes: [float16], label: "large"}
    ```

    Bad, `axis` is no param:

    ```yaml
    workloads:
      - {x_shape: [4, 8], axis: 1, dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], axis: 0, dtypes: [float16], label: "large"}
    ```

    Good:

    ```yaml
    workloads:
      - {x_shape: [4, 8], eps: 0.25, dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], dtypes: [float16], __note: "sweep", label: "large"}
    ```
    """
    declared = _only_input(entry)
    if declared is None or not entry.manifest.spec.knows("workload-keys"):
        return
    if not any(key.endswith("_shape") for row in entry.rows for key in row.data):
        return  # the family sizes its tensors by params alone
    shape_key = f"{declared.name}_shape"
    yield from _collisions(entry, shape_key)
    if not _all_params_known(entry):
        return
    allowed = {shape_key, *RESERVED_KEYS, *(param.name for param in entry.params)}
    for row in entry.rows:
        yield from _row_keys(entry, row, shape_key, [key for key in row.data if key not in allowed and key[:2] != "__"])


def _only_input(entry: OpEntry) -> Tensor | None:
    owner = entry.get("signature", "inputs")
    single = owner is not None and len(owner.items) == 2 and len(entry.inputs) == 1 and entry.inputs[0].name != "<<"
    return entry.inputs[0] if single else None


def _collisions(entry: OpEntry, shape_key: str) -> Iterator[Diagnostic]:
    for param in entry.params:
        if param.name in {shape_key, *RESERVED_KEYS}:
            message = f"the param `{param.name}` cannot be given in a row, where that key means something else; rename it"
            yield Diagnostic(message, entry.at(param.key), ops=(entry.name,))


def _all_params_known(entry: OpEntry) -> bool:
    owner = entry.get("signature", "params")
    if owner is None or (owner.kind == "scalar" and entry.data_of(owner) is None):
        return True
    return owner.is_mapping and len(list(owner.pairs())) == len(entry.params) and entry.param("<<") is None


def _row_keys(entry: OpEntry, row: Row, shape_key: str, unknown: list[str]) -> Iterator[Diagnostic]:
    declared = entry.inputs[0]
    related = (entry.related(declared.key, "the only input"),)
    shapes = [key for key in unknown if key.endswith("_shape")]
    if shape_key not in row.data and len(shapes) == 1:
        unknown.remove(shapes[0])
        message = f"`{shapes[0]}` is the shape of no input; the row must give the shape of `{declared.name}` as `{shape_key}`"
        fix = yaml_fix(
            entry,
            f"rename `{shapes[0]}` to `{shape_key}`",
            lambda: rename_key(entry.file, row.node, shapes[0], shape_key),
            f"a benchmark may read `{shapes[0]}`",
        )
        yield Diagnostic(message, entry.at(_key(row, shapes[0])), related, fix, (entry.name,))
    elif shape_key not in row.data:
        message = f"the row has no `{shape_key}`, which gives the shape of the input"
        yield Diagnostic(message, entry.at(row.node), related, ops=(entry.name,))
    for key in unknown:
        message = f"`{key}` is no param of the op; a row has `{shape_key}`, `dtypes`, `label` and params"
        yield Diagnostic(message, entry.at(_key(row, key)), ops=(entry.name,))


def _key(row: Row, key: str) -> Node:
    """The node of a row's key; the row where a merge brings it."""
    pair = row.node.pair(key)
    return pair[0] if pair is not None else row.node


@rule("WKL105", "optional-coverage")
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


@rule("WKL106", "duplicate-row", fixable="safe")
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
        key = _measured(row)
        first = seen.setdefault(key, row)
        if first is row:
            continue
        related = (entry.related(first.node, "the first one"),)
        if row.data.get("label") == first.data.get("label"):
            message = "the row repeats another one; drop it"
            yield Diagnostic(message, entry.at(row.node), related, _drop(entry, row), (entry.name,))
        else:
            label = first.data.get("label")
            name = f"`{label}`" if isinstance(label, str) else f"row {first.index + 1}"
            message = f"the row measures what {name} measures; only their labels differ"
            yield Diagnostic(message, entry.at(row.node), related, ops=(entry.name,), severity=Severity.WARNING)


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
    if owner is None or "#" in entry.file.source.text[row.node.start : row.node.end]:
        return None
    return yaml_fix(entry, "drop the row", lambda: remove_item(entry.file, owner, row.index))


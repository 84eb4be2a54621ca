"""The keys and labels of workload rows, by which benchmarks read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import ClassRef
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import rename_key, set_value
from opschema_rules.tileops.bindings import RESERVED_KEYS
from opschema_rules.tileops.carriers import carrier_names
from opschema_rules.tileops.drift import yaml_fix
from opschema_rules.tileops.entry_parts import Row, Tensor
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.proofs import ROWS, VALIDATOR
from opschema_rules.tileops.stray_keys import RowKeys, row_keys


@rule("WKL103", "workload-label-dtype", fixable="safe", pure=True, proof=VALIDATOR)
def workload_label_dtype(entry: OpEntry) -> Iterator[Diagnostic]:
    """A row's label names a dtype that the row lists.

    The name of a benchmark case is its label and the dtype that it runs, so `llama-8b-fp16` becomes
    `llama-8b-fp16-float16`; and a row with two dtypes runs one of them under a label that names the other. Short forms
    count: `fp16`, `bf16`, `f32`, `e4m3`, `i8`. A dtype that the row does not list may mean something else, such as the
    dtype of a cache.

    The fix removes the dtype from the label; it is safe as long as no other row of the op would run a dtype under the same
    label.

    This is checked if the tree's specification requires it.

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
    """The span where a label spells one of the dtypes."""
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


def _unfit(entry: OpEntry) -> Iterator[object]:
    """Params and rows with keys that do not derive from the signature, and rows without the shape of a plain input."""
    keys = row_keys(entry)
    if keys is not None:
        yield from _collisions(entry, keys.shape)
        for row in entry.rows if keys.params is not None else ():
            if keys.stray(row) or keys.shape not in row.data:
                yield row


@rule("WKL104", "workload-keys", fixable="unsafe", candidates=_unfit, proof=ROWS)
def workload_keys(entry: OpEntry) -> Iterator[Diagnostic]:
    """The keys of a row do not derive from the signature.

    For an op with one tensor input, a row is read by name: `{input}_shape` is the input's shape, `dtypes` and `label` are
    the dtypes and the label, and every other key is a param. Any other key is ignored, and a shape under another name is
    read only by hand-written code. Keys that begin with `__` are not restricted, and neither are the keys of ops with
    several inputs, whose families use aggregate shapes such as `kv_shape`. A row need not give the shape of a carrier (see
    `carrier-input`).

    The fix renames a key; it is unsafe because a benchmark may still read the old one.

    Holds where the tree's specification derives the keys from the signature.

    Bad:

    ```yaml
    workloads:
      - {input_shape: [4, 8], dtypes: [float16], label: "small"}
      - {input_shape: [8, 8], dtypes: [float16], label: "large"}
    ```

    Bad, `axis` is not a param:

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
    keys = row_keys(entry)
    if keys is None:
        return
    yield from _collisions(entry, keys.shape)
    for row in entry.rows if keys.params is not None else ():
        yield from _row_keys(entry, row, keys)


def _collisions(entry: OpEntry, shape_key: str) -> Iterator[Diagnostic]:
    for param in entry.params:
        if param.name in {shape_key, *RESERVED_KEYS}:
            message = (
                f"the param `{param.name}` cannot be given in a row, where that key means something else; rename it"
            )
            yield Diagnostic(message, entry.at(param.key), ops=(entry.name,))


def _row_keys(entry: OpEntry, row: Row, keys: RowKeys) -> Iterator[Diagnostic]:
    stray = keys.stray(row)
    if keys.shape not in row.data and keys.shape not in stray.values() and not _is_carrier(entry, keys.input):
        message = f"the row has no `{keys.shape}`, which gives the shape of the input"
        related = (entry.related(keys.input.key, "the only input"),)
        yield Diagnostic(message, entry.at(row.node), related, ops=(entry.name,))
    for key, meant in stray.items():
        if meant is None:
            message = f"`{key}` is not a param of the op; a row has `{keys.shape}`, `dtypes`, `label` and params"
            yield Diagnostic(message, entry.at(_key(row, key)), ops=(entry.name,))
        elif meant != "dtypes":  # a row without `dtypes` is MAN101's
            yield _misspelt(entry, row, keys, key, meant)


def _misspelt(entry: OpEntry, row: Row, keys: RowKeys, key: str, meant: str) -> Diagnostic:
    related = (entry.related(keys.input.key, "the only input"),) if meant == keys.shape else ()
    message = f"`{key}` is not a param of the op; did you mean `{meant}`?"
    if meant == keys.shape and key.endswith("_shape"):
        name = keys.input.name
        message = f"`{key}` is the shape of no input; the row must give the shape of `{name}` as `{meant}`"
    fix = yaml_fix(
        entry,
        f"rename `{key}` to `{meant}`",
        lambda: rename_key(entry.file, row.node, key, meant),
        f"a benchmark may read `{key}`",
    )
    return Diagnostic(message, entry.at(_key(row, key)), related, fix, (entry.name,))


def _is_carrier(entry: OpEntry, tensor: Tensor) -> bool:
    """Whether no call passes the input: then rows without its shape are not the fault."""
    ref = entry.op_class
    return isinstance(ref, ClassRef) and tensor.name in carrier_names(OpImplementation(entry, ref))


def _key(row: Row, key: str) -> Node:
    """The node of a row's key; the row where a merge brings it."""
    pair = row.node.pair(key)
    return pair[0] if pair is not None else row.node

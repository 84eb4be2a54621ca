"""The keys of a backend's YAML: allowed and required ones, and the values of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import rename_key
from opschema_rules.aten.dialects import BACKEND_KEYS, DIALECTS, OPERATOR_LIST, OPERATOR_LISTS
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import yaml_fix
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.fields import kind_of

_KEYS = (*BACKEND_KEYS, *OPERATOR_LISTS, "non_native")
_REQUIRED = {"backend": "a dispatch key, such as `XLA`", "cpp_namespace": "that of its kernels"}

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def is_strict(backend: BackendFile) -> bool:
    """Whether torchgen reads the file, not a generator that goes on from its language; a file that is a list says nothing."""
    return DIALECTS[backend.dialect].strict and backend.node.is_mapping


def _keys(backend: BackendFile) -> frozenset[str]:
    """The keys of the torchgen that reads the file."""
    return frozenset(backend.torchgen.limits.backend_keys or _KEYS)


def unknown_keys(backend: BackendFile) -> list[str]:
    """The keys that torchgen does not know, a merge aside."""
    return [name for name in backend.written if name not in (*_keys(backend), "<<")]


@rule("ATN601", "backend-key-missing", pure=True, by_release=True)
def backend_key_missing(backend: BackendFile) -> Iterator[Diagnostic]:
    """The YAML of a backend does not say which backend it is for, or where its kernels are.

    torchgen needs `backend`, the dispatch key, and `cpp_namespace`, and rejects a file in which one is missing or empty.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    supported:
      - relu
    ```

    Bad:

    ```yaml xla_native_functions.yaml
    - backend: XLA
      cpp_namespace: torch_xla
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    ```
    """
    if not backend.node.is_mapping and backend.dialect != OPERATOR_LIST.name:
        message = (
            f"a backend's YAML is a mapping with `backend` and `cpp_namespace`, and this is {kind_of(backend.node)}"
        )
        yield Diagnostic(message, backend.at(backend.first))
    if not is_strict(backend):
        return
    for name, what in _REQUIRED.items():
        key, node = backend.fields.get(name, (None, None))
        if key is None:
            yield Diagnostic(f"`{name}` is missing: {what}", backend.at(backend.first))
        elif key is not None and node is not None and kind_of(node) == "nothing":
            yield Diagnostic(f"`{name}` is empty; it holds {what}", backend.at(key))


@rule("ATN602", "unknown-backend-key", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def unknown_backend_key(backend: BackendFile) -> Iterator[Diagnostic]:
    """The YAML of a backend has a key that torchgen does not know.

    torchgen rejects the file. Its message lists `extra_headers` among the supported keys, which is rejected like any other,
    and omits `use_out_as_primary` and `device_guard`, which are accepted. Keys of generators that extend torchgen's format
    (op-plugin, torch_npu, torch-mlir) are not checked in their files.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespce: torch_xla
    supported:
      - add.Tensor
    ```

    Bad, beside the key that is meant:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    suported:
      - relu
    supported:
      - add.Tensor
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    device_guard: true
    supported:
      - relu
    ```
    """
    if not is_strict(backend):
        return
    for name in unknown_keys(backend):
        meant = backend.misspelt.get(name)
        near = meant if meant in _keys(backend) else None
        if name == "extra_headers":
            message = "torchgen names the key `extra_headers` in its messages and refuses it; leave it out"
        elif near is not None:
            message = f"torchgen has no key `{name}`; did you mean `{near}`?"
        else:
            known = _keys(backend)
            keys = listed([*(key for key in _KEYS if key in known), *sorted(known.difference(_KEYS))])
            message = f"torchgen has no key `{name}`; there are {keys}"
        yield Diagnostic(message, backend.at(backend.written[name][0]), fix=_renaming(backend, name, near))


def _renaming(backend: BackendFile, name: str, near: str | None) -> Fix | None:
    if near is None:
        return None
    return yaml_fix(backend, f"write `{near}`", partial(rename_key, backend.file, backend.node, name, near))


@rule("ATN603", "backend-value", pure=True, by_release=True)
def backend_value(backend: BackendFile) -> Iterator[Diagnostic]:
    """A key in a backend's YAML has an invalid value.

    `backend`, `cpp_namespace` and `class_name` are names in C++, the namespace with at most two levels, or as many as the
    torchgen in use accepts; `use_out_as_primary` and `device_guard` are true or false. torchgen rejects most errors, some
    only when it writes code, and accepts a number as a class name.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch::lazy::xla
    use_out_as_primary: frue
    supported:
      - relu
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch::lazy
    class_name: XLANativeFunctions
    use_out_as_primary: false
    supported:
      - relu
    ```
    """
    if not is_strict(backend):
        return
    for name in BACKEND_KEYS:
        key, node = backend.fields.get(name, (None, None))
        if key is None or node is None:
            continue
        fault = (
            _flag_fault(backend, name)
            if name in ("use_out_as_primary", "device_guard")
            else _name_fault(name, node, _depth(backend))
        )
        if fault:
            yield Diagnostic(f"`{name}` {fault}", backend.at(node if node.end > node.start else key))


def _depth(backend: BackendFile) -> int | None:
    """Return the maximum number of namespaces; None for a file with options of operators, unless the tree is built with a
    torchgen that rejects them.
    """
    limits, reference = backend.torchgen.limits, backend.reference
    certain = limits.takes_options is not None and reference is not None and reference.certain
    newer = not certain and any(item.options is not None for item in backend.items)
    return None if newer else limits.backend_depth


def _flag_fault(backend: BackendFile, name: str) -> str:
    node = backend.get(name)
    if node is None or backend.flag(name) is not None:
        return ""
    return f"is true or false, and this is {kind_of(node)}"


def _name_fault(name: str, node: Node, most: int | None) -> str:
    """Describe what is wrong with the value of a key that holds a name; an empty one is left to another rule."""
    text = string(node)
    if text is None:
        return "" if kind_of(node) == "nothing" else f"is a name, and this is {kind_of(node)}"
    parts = text.split("::") if name == "cpp_namespace" else [text]
    bad = next((part for part in parts if not _IDENTIFIER.fullmatch(part)), None)
    if bad is not None:
        return f"is a name in C++, and `{text}` is none"
    if most is not None and len(parts) > most:
        return f"nests {len(parts)} namespaces; torchgen takes at most {most}"
    return ""

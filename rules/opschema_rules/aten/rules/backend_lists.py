"""The lists of a backend's YAML: that they are lists, and that each item names an operator."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Node
from opschema_rules.aten.backend import OPTIONS, has_options_beside
from opschema_rules.aten.dialects import OPERATOR_LISTS
from opschema_rules.aten.entry import string
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.rules.backend_keys import is_strict
from opschema_rules.aten.rules.fields import kind_of

_MAY_BE_EMPTY = ("supported", "symint")
"""The lists that torchgen reads as empty if the key has no value."""


@rule("ATN605", "backend-list", pure=True)
def backend_list(backend: BackendFile) -> Iterator[Diagnostic]:
    """The value of a key that takes a list of operators is not a list.

    `supported` and `symint` may be left empty, the others not: torchgen fails on an empty `full_codegen` or `autograd` with
    a Python error, and reads the text in `full_codegen: abs` letter by letter.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: relu
    autograd:
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    symint:
    ```
    """
    if not is_strict(backend):
        return
    for name in (*OPERATOR_LISTS, "non_native"):
        key, node = backend.fields.get(name, (None, None))
        if key is None or node is None or node.is_sequence:
            continue
        kind = kind_of(node)
        if kind != "nothing":
            yield Diagnostic(f"`{name}` is a list of operators, and this is {kind}", backend.at(node))
        elif name not in _MAY_BE_EMPTY:
            yield Diagnostic(f"`{name}` is empty; torchgen takes a list: write `[]`, or leave it out", backend.at(key))


@rule("ATN606", "backend-item", pure=True, by_release=True)
def backend_item(backend: BackendFile) -> Iterator[Diagnostic]:
    """An item of a backend's list names no operator.

    An item is the operator's name with its overload. Newer versions of torchgen accept options after it (PyTorch pull
    request #172539), as `- mul.out: {structured: true}`, indented below, or beside the name as in PyTorch's own
    `openreg_native_functions.yaml`.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
      - 3
      - add.out:
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
      - add.out:
          structured: true
      - mul.out:
        structured: true
    ```
    """
    if not is_strict(backend):
        return
    for name in OPERATOR_LISTS:
        node = backend.get(name)
        for item in node.items if node is not None and node.is_sequence else ():
            fault = _fault(backend, name, backend.file.document.follow(item))
            if fault is not None:
                yield fault


def _fault(backend: BackendFile, section: str, item: Node) -> Diagnostic | None:
    if item.is_mapping:
        return _mapping_fault(backend, section, item)
    if string(item):
        return None
    what = "an empty text" if string(item) is not None else kind_of(item)
    return Diagnostic(f"an item of `{section}` is an operator's name, and this is {what}", backend.at(item))


def _mapping_fault(backend: BackendFile, section: str, item: Node) -> Diagnostic | None:
    """Describe what is wrong with ``- mul.out: {structured: true}``."""
    first = item.items[0] if item.items else item
    if len(item.items) < 2 or not string(first) or section in ("symint", "ir_gen"):
        message = f"an item of `{section}` is an operator's name, and this is a mapping"
        return Diagnostic(message, backend.at(item))
    if has_options_beside(backend.file, item):
        return _refused_options(backend, first) or _option_fault(backend, item)
    options = backend.file.document.follow(item.items[1])
    if kind_of(options) == "nothing" and len(item.items) > 2:
        message = (
            f"indent the options of `{first.value}` deeper than its name; at this indentation they are further names"
        )
        return Diagnostic(message, backend.at(item.items[2]), (backend.related(first, "the operator"),))
    if not options.is_mapping or len(item.items) > 2:
        message = f"`{first.value}` is followed by `:`, and options are to come: `{first.value}: {{structured: true}}`"
        return Diagnostic(message, backend.at(first))
    return _refused_options(backend, first) or _option_fault(backend, options)


def _refused_options(backend: BackendFile, name: Node) -> Diagnostic | None:
    reference = backend.reference
    if reference is None or not reference.version or reference.torchgen.limits.takes_options is not False:
        return None
    message = f"the torchgen of {reference.origin} takes no options of `{name.value}`; write the name alone"
    severity = Severity.ERROR if reference.certain else Severity.WARNING
    return Diagnostic(message, backend.at(name), ops=(name.value,), severity=severity)


def _option_fault(backend: BackendFile, options: Node) -> Diagnostic | None:
    for key, value in options.pairs():
        node = backend.file.document.follow(value)
        if key.value in OPTIONS and kind_of(node) != "true or false":
            message = f"`{key.value}` is true or false, and this is {kind_of(node)}"
            return Diagnostic(message, backend.at(node if node.end > node.start else key))
    return None

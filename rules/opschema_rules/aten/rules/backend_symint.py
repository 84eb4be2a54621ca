"""The list ``symint`` of a backend's YAML: which of its kernels take symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.aten.known_operators import certain_slip
from opschema_rules.aten.model import REFERENCE, BackendFile, BackendItem, Reference
from opschema_rules.aten.rules.backend_dispatch import severity_of
from opschema_rules.aten.rules.backend_keys import is_strict, unknown_keys
from opschema_rules.aten.rules.backend_operators import KERNELS, name_fault
from opschema_rules.aten.rules.fields import kind_of


@rule("ATN621", "symint-unlisted", pure=True, by_release=True)
def symint_unlisted(backend: BackendFile) -> Iterator[Diagnostic]:
    """`symint` names an operator that the backend has no kernel for.

    `symint` adds to what is in `supported`, `full_codegen` or `autograd`: the kernel is called `<name>_symint` and takes
    `SymInt`. For an operator that is in none of them, torchgen generates nothing and reports nothing.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    symint:
      - expand
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
      - expand
    symint:
      - expand
    ```
    """
    if not is_strict(backend) or not _is_read(backend):
        return
    registered = {item.name for item in backend.items if item.section in (*KERNELS, "autograd")}
    unlisted = [item for item in backend.section("symint") if item.name not in registered]
    misspelt = {certain_slip(name) for name in registered} if unlisted else set()
    for item in unlisted:
        if item.name not in misspelt and not name_fault(item.name) and _exists(backend, item):
            message = (
                f"`{item.name}` is listed under `symint` and has no kernel: list it under `supported` or `full_codegen` "
                "too, or remove it"
            )
            yield Diagnostic(message, backend.at(item.name_node), ops=(item.name,))


def _is_read(backend: BackendFile) -> bool:
    """Whether no list of kernels may be hidden in malformed or misspelt text."""
    lists = map(backend.get, (*KERNELS, "autograd"))
    words = all(key.kind == "scalar" for key, _ in backend.node.pairs())
    return (
        words
        and backend.misspelt.keys() >= set(unknown_keys(backend))
        and all(node is None or node.is_sequence or kind_of(node) == "nothing" for node in lists)
    )


def _exists(backend: BackendFile, item: BackendItem) -> bool:
    """Whether the operator is not reported as unknown by another rule."""
    reference = backend.reference
    return reference is None or not reference.catalogue.complete or item.name in reference.catalogue.by_name


@rule("ATN622", "symint-without-symint", pure=True, needs=(REFERENCE,))
def symint_without_symint(backend: BackendFile) -> Iterator[Diagnostic]:
    """`symint` names an operator whose schema has no `SymInt`.

    torchgen rejects it when it writes the kernel's declaration.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    symint:
      - relu
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - expand
    symint:
      - expand
    ```
    """
    reference = backend.reference
    if not is_strict(backend) or reference is None:
        return
    for item in backend.section("symint"):
        known = reference.catalogue.by_name.get(item.name)
        if known is not None and not known.symint:
            message = (
                f"`{item.name}` is listed under `symint`, and no argument of it is a `SymInt` in {reference.origin}"
            )
            related = declared(reference, item.name)
            place, severity = backend.at(item.name_node), severity_of(reference)
            yield Diagnostic(message, place, related, ops=(item.name,), severity=severity)


def declared(reference: Reference, name: str) -> tuple[Related, ...]:
    """The place where PyTorch declares an operator; empty if torchgen generates it."""
    entries = reference.native.by_name.get(name, [])
    return tuple(Related(entry.place, "PyTorch declares it here") for entry in entries[:1])

"""The dispatch keys under which a backend's kernels are registered."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.suggestions import nearest
from opschema_rules.aten.model import REFERENCE, BackendFile, Reference
from opschema_rules.aten.rules.backend_keys import is_strict


def severity_of(reference: Reference | None) -> Severity:
    """An error where the tree is known to be built with the reference, else a warning."""
    return Severity.ERROR if reference is not None and reference.certain else Severity.WARNING


@rule("ATN607", "backend-dispatch-key", pure=True, by_release=True, needs=(REFERENCE,))
def backend_dispatch_key(backend: BackendFile) -> Iterator[Diagnostic]:
    """`backend` is not a dispatch key, or is one that PyTorch itself has kernels for.

    The operators are registered under the dispatch key `backend`, those of `autograd` under `Autograd` and that name; both
    must be among torchgen's. A key for which native_functions.yaml already has kernels is rejected as well. A backend that
    has no key of its own uses `PrivateUse1`.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLAA
    cpp_namespace: torch_xla
    supported:
      - relu
    ```

    Bad (in the example's PyTorch `CPU` has kernels):

    ```yaml cpu_native_functions.yaml
    backend: CPU
    cpp_namespace: my_cpu
    supported:
      - relu
    ```

    Bad:

    ```yaml vulkan_native_functions.yaml
    backend: Vulkan
    cpp_namespace: vulkan
    autograd:
      - relu
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    autograd:
      - add.Tensor
    ```
    """
    node = backend.get("backend")
    if not is_strict(backend) or node is None or not backend.name:
        return
    reference = backend.reference
    origin = reference.origin if reference is not None else backend.torchgen.origin
    known = backend.torchgen.vocabulary.dispatch_keys
    severity = severity_of(reference)
    forward = any(item.section in ("supported", "full_codegen") for item in backend.items)
    if backend.name not in known:
        if forward or backend.section("autograd"):
            message = f"`{backend.name}` is not a dispatch key of {origin}{_hint(backend.name, known)}"
            yield Diagnostic(message, backend.at(node), severity=severity)
        return
    if forward and reference is not None and backend.name in reference.catalogue.keys:
        message = f"{origin} has kernels for `{backend.name}` itself, so that torchgen refuses them from a backend"
        yield Diagnostic(message, backend.at(node), severity=severity)
    key = backend.key("autograd")
    if key is not None and backend.section("autograd") and f"Autograd{backend.name}" not in known:
        message = f"`Autograd{backend.name}` is not a dispatch key of {origin}, so that `autograd` cannot be registered"
        yield Diagnostic(message, backend.at(key), (backend.related(node, "the backend"),), severity=severity)


def _hint(name: str, known: frozenset[str]) -> str:
    near = nearest(name, known)
    near = "PrivateUse1" if near is not None and near.startswith("PrivateUse") else near
    return (
        f"; did you mean `{near}`?" if near is not None else "; a backend without a key of its own uses `PrivateUse1`"
    )

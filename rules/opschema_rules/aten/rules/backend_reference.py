"""Whether it is known which operators PyTorch has."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_rules.aten.model import BackendFile


@rule("ATN641", "no-operators-known", severity="info", pure=True)
def no_operators_known(backend: BackendFile) -> Iterator[Diagnostic]:
    """There is no native_functions.yaml by which a backend's YAML can be judged.

    Whether the operators exist, which of them take `SymInt` and which are variants of each other is not checked then. They are
    read from the file that `native-functions` in `[tool.opschema.aten]` names, from a native_functions.yaml in the tree, or
    from an installed torch (in the active environment, in `.venv`, or where the variable `OPSCHEMA_TORCH` says), of which nothing
    is imported.

    Bad:

    ```toml opschema.toml
    [aten]
    installed-torch = false
    ```

    ```yaml native_functions.yaml
    []
    ```

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    ```
    """
    if backend.reference is None and backend.items:
        message = (
            "PyTorch's operators are not known here, so that these are not checked against them: install torch beside opschema, "
            "or name its native_functions.yaml in `tool.opschema.aten.native-functions`"
        )
        first = backend.node.items[0] if backend.node.items else backend.node
        yield Diagnostic(message, backend.at(backend.key("backend") or first))

"""Backend YAML that torchgen's loader rejects before it checks anything."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Node
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.refused_yaml import TAGS
from opschema_rules.aten.rules.backend_keys import is_strict
from opschema_rules.aten.rules.fields import kind_of


@rule("ATN604", "repeated-backend-key", pure=True)
def repeated_backend_key(backend: BackendFile) -> Iterator[Diagnostic]:
    """A key of a backend's YAML appears twice.

    torchgen rejects the file; a reader that accepts it would lose all operators in the first list.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    supported:
      - add.Tensor
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
      - add.Tensor
    ```
    """
    first: dict[str, Node] = {}
    for key, _ in backend.node.pairs():
        earlier = first.setdefault(key.value, key) if key.kind == "scalar" else key
        if earlier is not key:
            message = f"`{key.value}` appears twice; merge their contents under one"
            yield Diagnostic(message, backend.at(key), (backend.related(earlier, "it appears here first"),))


@rule("ATN608", "backend-yaml", pure=True)
def backend_yaml(backend: BackendFile) -> Iterator[Diagnostic]:
    """YAML that torchgen's loader rejects: a merge (`<<`), a tag, a key that is a list or a mapping.

    The loader raises, and the rest of the file is not read.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    class_name: !name Kernels
    <<: {device_guard: true}
    supported:
      - relu
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    class_name: !!str Kernels
    device_guard: true
    supported:
      - relu
    ```
    """
    if not is_strict(backend):
        return
    for key, _ in backend.node.pairs():
        target = backend.file.document.follow(key)
        if target.kind != "scalar":
            yield Diagnostic(f"a key of a backend's YAML is a word, and this is {kind_of(target)}", backend.at(key))
        elif key.value == "<<" and not key.style:
            yield Diagnostic("torchgen's loader does not support merges (`<<`); write the keys out", backend.at(key))
    for node in backend.node.walk() if "!" in backend.file.source.text else ():
        if node.tag not in TAGS:
            yield Diagnostic(f"torchgen's loader refuses the tag `{node.tag[:80]}`; leave it out", backend.at(node))

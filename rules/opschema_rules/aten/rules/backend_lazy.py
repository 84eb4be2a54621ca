"""The part of a backend that only lazy tensor backends have: the list ``non_native`` of nodes that are not operators of ATen."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import SchemaText, string
from opschema_rules.aten.model import BackendFile
from opschema_rules.aten.rules.backend_keys import is_strict
from opschema_rules.aten.rules.fields import kind_of

_FIELDS = ("func", "opkind", "properties")
_PROPERTIES = (
    *("ShapePrecompute", "ShapeCompute", "ShapeCache", "Lower", "LowerDeclOnly", "CanBeReused", "CanBeReusedDeclOnly"),
    *("CreateFn", "CreateFnDeclOnly", "TreatScalarsAsConstants"),
)
"""``torchgen.api.lazy.LazyIrProperties``."""


@rule("ATN631", "non-native-node", pure=True)
def non_native_node(backend: BackendFile) -> Iterator[Diagnostic]:
    """An item of `non_native` is malformed.

    A lazy tensor backend lists nodes there that are not ATen operators: mappings with a schema in `func`, and optionally
    `opkind` and `properties`. `gen_lazy_tensor` fails on most errors with a Python error, and ignores fields that it does
    not know; `gen_backend_stubs` ignores the list.

    Bad:

    ```yaml lazy_native_functions.yaml
    backend: Lazy
    cpp_namespace: torch::lazy
    supported:
      - relu
    non_native:
      - func: scalar(Scalar value, ScalarType type) -> tensor
      - func: cast(Tensor input, ScalarType dtype) -> Tensor
        properties:
          - ShapeCompute
          - CanBeReuse
    ```

    Good:

    ```yaml lazy_native_functions.yaml
    backend: Lazy
    cpp_namespace: torch::lazy
    supported:
      - relu
    non_native:
      - func: scalar(Scalar value, ScalarType type) -> Tensor
        opkind: at::prim::Constant
      - func: cast(Tensor input, ScalarType dtype) -> Tensor
        properties:
          - ShapeCompute
          - CanBeReused
    ```
    """
    node = backend.get("non_native")
    if not is_strict(backend) or node is None or not node.is_sequence:
        return
    for item in map(backend.file.document.follow, node.items):
        if not item.is_mapping:
            message = f"an item of `non_native` is a mapping with the field `func`, and this is {kind_of(item)}"
            yield Diagnostic(message, backend.at(item))
            continue
        fields = {key.value: (key, backend.file.document.follow(value)) for key, value in item.pairs()}
        yield from _schema_faults(backend, item, fields)
        yield from _field_faults(backend, fields)


def _schema_faults(backend: BackendFile, item: Node, fields: dict[str, tuple[Node, Node]]) -> Iterator[Diagnostic]:
    key, node = fields.get("func", (item.items[0] if item.items else item, None))
    text = string(node)
    if node is None or text is None:
        yield Diagnostic("the item has no schema in `func`", backend.at(key))
        return
    schema = SchemaText(backend, node, text)
    for error in schema.parsed.errors:
        if error.refused:
            yield Diagnostic(error.message, schema.place(error.span), ops=(text.partition("(")[0],))


def _field_faults(backend: BackendFile, fields: dict[str, tuple[Node, Node]]) -> Iterator[Diagnostic]:
    for name, (key, _) in fields.items():
        near = nearest(name, set(_FIELDS) - fields.keys()) if name not in _FIELDS else None
        if near is not None:
            yield Diagnostic(f"the generator passes over the field `{name}`; did you mean `{near}`?", backend.at(key))
    if "properties" not in fields:
        return
    key, node = fields["properties"]
    if not node.is_sequence:
        yield Diagnostic(f"`properties` is a list, and this is {kind_of(node)}", backend.at(key))
    for item in map(backend.file.document.follow, node.items if node.is_sequence else ()):
        if string(item) not in _PROPERTIES:
            near = nearest(item.value, _PROPERTIES)
            hint = did_you_mean(near)
            yield Diagnostic(f"`{item.value[:80]}` is not a property of a node{hint}", backend.at(item))

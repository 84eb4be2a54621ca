"""Lists of operators without schemas, from which generators of vendors register kernels."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.yaml import scalar_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.dialects import OPERATOR_LIST
from opschema_rules.aten.entry import string
from opschema_rules.aten.model import BackendFile, BackendItem


@rule("ATN616", "listed-dispatch-key", pure=True, by_release=True)
def listed_dispatch_key(backend: BackendFile) -> Iterator[Diagnostic]:
    """An operator in a list without schemas has a kernel under a key that is not a dispatch key.

    torch_musa lists operators by their names, and under `dispatch` their kernels. Its generator reads the keys as torchgen
    does, several of them with commas between them.

    Bad:

    ```yaml musa_functions.yaml
    - func: relu
      dispatch:
        PrivateUse1: Relu
    - func: add.Tensor
      dispatch:
        PrivateUseOne: Add
    ```

    Good:

    ```yaml musa_functions.yaml
    - func: relu
      dispatch:
        PrivateUse1, QuantizedPrivateUse1: Relu
    - func: add.Tensor
    ```
    """
    if backend.dialect != OPERATOR_LIST.name:
        return
    known = backend.torchgen.vocabulary.dispatch_keys
    for item in backend.items:
        table = item.options.get("dispatch") if item.options is not None else None
        for key, _ in table.pairs() if table is not None and table.is_mapping else ():
            for name in map(str.strip, key.value.split(",") if key.kind == "scalar" else ()):
                if name not in known:
                    hint = did_you_mean(nearest(name, known))
                    message = f"`{name}` is not a dispatch key of {backend.torchgen.origin}{hint}"
                    related = (backend.related(item.name_node, f"a kernel of `{item.name}`"),)
                    yield Diagnostic(message, backend.at(key), related, ops=(item.name,))


@rule("ATN617", "listed-delegate", severity="warning", pure=True)
def listed_delegate(backend: BackendFile) -> Iterator[Diagnostic]:
    """An operator in a list without schemas delegates to one that the list does not mark as structured.

    torch_mlu lists the operators of ATen with `structured_delegate`, and the out variant that is delegated to with
    `structured: True`. Without the mark its generator registers the out variant as an unstructured kernel.

    Bad:

    ```yaml mlu_functions.yaml
    aten:
      - func: floor
        structured_delegate: floor.out
      - func: floor.out
        structured_inherits: TensorIteratorBase
    ```

    Good:

    ```yaml mlu_functions.yaml
    aten:
      - func: floor
        structured_delegate: floor.out
      - func: floor.out
        structured: True
        structured_inherits: TensorIteratorBase
    ```
    """
    if backend.dialect != OPERATOR_LIST.name:
        return
    own = {item.name: item for item in backend.items}
    delegating: dict[str, list[BackendItem]] = {}
    for item in backend.items:
        name = string(item.options.get("structured_delegate")) if item.options is not None else None
        if name is not None:
            delegating.setdefault(name, []).append(item)
    for name, items in delegating.items():
        target = own.get(name)
        names = listed([item.name for item in items])
        verb = "delegates" if len(items) == 1 else "delegate"
        if target is None:
            message = f"{names} {verb} to `{name}`, which is not in the list{did_you_mean(nearest(name, own))}"
            yield Diagnostic(message, backend.at(items[0].name_node), ops=(items[0].name,))
        elif not _is_structured(target):
            message = f"`{name}` is not marked `structured: True`, and {names} {verb} to it"
            related = tuple(backend.related(item.name_node, f"`{item.name}` delegates to it") for item in items)
            yield Diagnostic(message, backend.at(target.name_node), related, ops=(name,))


def _is_structured(item: BackendItem) -> bool:
    """Whether an item has the mark, in any spelling that is not false."""
    node = item.options.get("structured") if item.options is not None else None
    return node is not None and (node.kind != "scalar" or scalar_value(node) not in (None, False))

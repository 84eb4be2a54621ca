"""Operators that builds select."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.executorch.model import ATEN
from opschema_rules.executorch.selections import Selected

_PRIM_OPS = ("sym_size", "sym_numel", "sym_max", "sym_min", "sym_float", "_local_scalar_dense")
"""Parts of names in ``aten`` that belong to the runtime itself (``codegen.bzl`` and ``register_prim_ops.cpp``): it registers
their kernels, and no list names them.
"""


@rule("EXE601", "unknown-selected-operator")
def unknown_selected_operator(selected: Selected) -> Iterator[Diagnostic]:
    """A selected operator that no list declares.

    A selective build registers only the kernels of the operators that it names, with namespace and overload. Unknown names are
    ignored, and a program that calls the operator fails to load (`Missing operator`). opschema reads `ROOT_OPS` in CMake files,
    `ops` and `ops_dict` in Buck's `et_operator_library`, `selected_operators.yaml`, and the values of
    `EXECUTORCH_SELECT_OPS_LIST` and `--root_ops` in scripts. A name is checked only if some list
    declares operators in its namespace. Operators that the runtime itself registers, such as `aten::sym_size.int`,
    are in no list.

    Bad:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    ```

    ```cmake
    set(_ops "aten::add.out" "aten::add.Tensor")
    gen_selected_ops(LIB_NAME "ops" ROOT_OPS ${_ops})
    ```

    Good (`EXECUTORCH_LIBRARY` registers the operator):

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    ```cpp
    EXECUTORCH_LIBRARY(kit, "shift.out", kit::native::shift_out);
    ```

    ```cmake
    gen_selected_ops(LIB_NAME "ops" ROOT_OPS "kit::scale.out" "kit::shift.out")
    ```

    Good (`sym_size` belongs to the runtime; `kit` is assumed to come from another library):

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    ```

    ```cmake
    # formerly "aten::sub.out"
    gen_selected_ops(LIB_NAME "ops" ROOT_OPS "aten::add.out" "aten::sym_size.int" "kit::scale.out")
    ```
    """
    tree, name = selected.tree, selected.name
    namespace = name.partition("::")[0]
    if name in tree.by_name or not tree.namespaces[namespace]:
        return
    if namespace == ATEN and not any(item.names_kernels for item in tree.lists):
        return
    if namespace == ATEN and any(part in name for part in _PRIM_OPS):
        return
    if name in tree.runtime_names:
        return
    near = nearest(name, (one for one in tree.by_name if one.startswith(f"{namespace}::")))
    yield Diagnostic(
        f"no operator list declares `{name}`; selecting it has no effect{did_you_mean(near)}",
        selected.place,
        ops=(name,),
    )

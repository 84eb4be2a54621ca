"""ATen operators that entries name, looked up in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed as words
from opschema_rules.aten.findings import found
from opschema_rules.aten.native import WHOLE
from opschema_rules.aten.torchgen_table import ever_operators
from opschema_rules.executorch.model import ATEN, OpEntry


@rule("EXE201", "unknown-aten-operator")
def unknown_aten_operator(entry: OpEntry) -> Iterator[Diagnostic]:
    """An entry whose `op` is not an operator of PyTorch.

    The code generator looks `op` up in PyTorch's `native_functions.yaml` and fails without naming the operator (`assert opname
    in schema_dict`). The overload is part of the name, and out variants that torchgen generates are known. An operator of another
    namespace is declared by its schema, in `func`.

    Names are looked up in the PyTorch release that the repository pins, or in the installed one. If the release is uncertain, a
    name that no known release has is a warning, or an error if it looks like a misspelling of a known one.

    Bad:

    ```yaml
    - op: add.Tensor_out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - op: kit::scale.out
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    Good (torchgen generates the second operator):

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - op: expand_copy.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::expand_copy_out
    ```
    """
    if entry.schema_text is not None or entry.text("op") is None or entry.get("func") is not None:
        return
    namespace, _, name = entry.qualified.partition("::")
    if namespace != ATEN:
        message = f"`{entry.qualified}` is not an ATen operator; replace `op` by `func` with its schema"
        yield found(entry, entry.place.span, message)
        return
    known = entry.owner.tree.aten
    excerpt = len(known.reference.catalogue.operators) < WHOLE and name in ever_operators()
    if known.has(name) or excerpt:
        return
    near = known.candidates(name)
    meant = f"; did you mean {words(near[:3], 'or')}?" if near else ""
    severity = Severity.ERROR if near or known.certain else Severity.WARNING
    yield found(entry, entry.place.span, f"{known.origin} has no operator `{name}`{meant}", severity=severity)

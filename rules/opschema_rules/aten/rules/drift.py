"""Copies of ATen's schemas that differ from ATen's, or no longer match.

Copies are those of op-plugin's YAML, as far as they hold for the version of the reference, and those of a native_functions.yaml
that is an excerpt of PyTorch's own, if it is certain that both are of one version. The reference is the native_functions.yaml that
the configuration names, or that of the installed torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.aten.drift import CopiedSchemas, Side
from opschema_rules.aten.model import REFERENCE


def _found(copied: CopiedSchemas, *sides: Side, severity: Severity = Severity.WARNING) -> Iterator[Diagnostic]:
    for copy, item in copied.differences:
        if item.side in sides:
            yield Diagnostic(item.message, item.place, item.related, ops=(copy.name,), severity=severity)


@rule("ATN801", "copied-operator-missing", severity="warning", pure=True, needs=(REFERENCE,))
def copied_operator_missing(copied: CopiedSchemas) -> Iterator[Diagnostic]:
    """A schema is copied from PyTorch, and PyTorch has no such operator.

    It was removed, or its overload has another name now. If entries give the versions that they apply to, the copy must end
    with the last version that had it.

    Bad (PyTorch has `add.Tensor`):

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensors(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        op_api: all_version
    ```

    Good:

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        op_api: all_version
      - func: add.Tensors(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        op_api: [v2.12, v2.12]
    ```
    """
    yield from _found(copied, "removed")


@rule("ATN802", "copied-arguments", severity="warning", pure=True, needs=(REFERENCE,))
def copied_arguments(copied: CopiedSchemas) -> Iterator[Diagnostic]:
    """A schema that is copied from PyTorch has different arguments.

    An argument has another name, is missing, is superfluous, or is in another position. Names matter to callers that pass
    arguments by name, number and order to the signature of the C++ kernel.

    Bad (PyTorch has `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`):

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor tensor, *, Scalar alpha=1) -> Tensor
        op_api: all_version
    ```

    Good:

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        op_api: all_version
      - func: add.Tensor(Tensor self, Tensor tensor, *, Scalar alpha=1) -> Tensor
        op_api: [v2.12, v2.12]
    ```
    """
    yield from _found(copied, "arguments")


@rule("ATN803", "copied-type", severity="warning", pure=True, needs=(REFERENCE,))
def copied_type(copied: CopiedSchemas) -> Iterator[Diagnostic]:
    """An argument of a schema that is copied from PyTorch has a different type.

    The C++ kernel then has another signature. `int` for `SymInt` is only an `info`: such a kernel can be registered, and
    receives plain numbers where PyTorch traces symbolic ones.

    Bad (PyTorch has `expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)`):

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: expand(Tensor(a) self, Tensor size, *, bool implicit=False) -> Tensor(a)
        op_api: all_version
    ```

    Good:

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
        op_api: all_version
      - func: expand(Tensor(a) self, Tensor size, *, bool implicit=False) -> Tensor(a)
        op_api: [v2.12, v2.12]
    ```
    """
    yield from _found(copied, "type")
    yield from _found(copied, "symint", severity=Severity.INFO)


@rule("ATN804", "copied-alias", severity="warning", pure=True, needs=(REFERENCE,))
def copied_alias(copied: CopiedSchemas) -> Iterator[Diagnostic]:
    """A schema that is copied from PyTorch has different alias annotations.

    The annotations (`Tensor(a!)`) tell autograd and functionalization what an operator does to its arguments.

    Bad (PyTorch has `relu_(Tensor(a!) self) -> Tensor(a!)`):

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: relu_(Tensor self) -> Tensor
        op_api: all_version
    ```

    Good:

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: relu_(Tensor(a!) self) -> Tensor(a!)
        op_api: all_version
      - func: relu_(Tensor self) -> Tensor
        op_api: [v2.12, v2.12]
    ```
    """
    yield from _found(copied, "alias")


@rule("ATN805", "copied-default", severity="warning", pure=True, needs=(REFERENCE,))
def copied_default(copied: CopiedSchemas) -> Iterator[Diagnostic]:
    """An argument of a schema that is copied from PyTorch has a different default.

    A call of the copy without the argument gives another result than the same call of PyTorch's operator.

    Bad (PyTorch has `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`):

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=2) -> Tensor
        op_api: all_version
    ```

    Good:

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        op_api: all_version
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=2) -> Tensor
        op_api: [v2.12, v2.12]
    ```
    """
    yield from _found(copied, "default")


@rule("ATN806", "copied-returns", severity="warning", pure=True, needs=(REFERENCE,))
def copied_returns(copied: CopiedSchemas) -> Iterator[Diagnostic]:
    """A schema that is copied from PyTorch has different returns.

    The C++ kernel then has another signature, which the dispatcher rejects when it is registered.

    Bad (PyTorch has `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`):

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> (Tensor, Tensor)
        op_api: all_version
    ```

    Good:

    ```yaml op_plugin_functions.yaml
    all_version: [v2.12, v2.13]
    official:
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
        op_api: all_version
      - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> (Tensor, Tensor)
        op_api: [v2.12, v2.12]
    ```
    """
    yield from _found(copied, "returns")

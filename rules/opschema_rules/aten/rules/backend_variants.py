"""Operators of a backend in relation to their variants and to PyTorch's composites."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.yaml import scalar_value
from opschema_rules.aten.catalogue import Known
from opschema_rules.aten.catalogue_reading import variants_across
from opschema_rules.aten.kernels import LISTS
from opschema_rules.aten.model import REFERENCE, BackendFile, BackendItem
from opschema_rules.aten.rules.backend_dispatch import severity_of
from opschema_rules.aten.rules.backend_keys import is_strict
from opschema_rules.aten.rules.backend_operators import KERNELS, related_items


@rule("ATN614", "backend-group-split", pure=True, needs=(REFERENCE,))
def backend_group_split(backend: BackendFile) -> Iterator[Diagnostic]:
    """Variants of one operator are registered partly for the backend and partly for its autograd.

    torchgen requires the functional, in-place and out variants of an operator to be all in `supported` (or `full_codegen`)
    or all in `autograd`. For unlisted variants, it writes functions that call the functional variant and copy its
    result. It fails on in-place operators over lists of tensors, as they return nothing: "Expected exactly 1 out argument, got 0".
    List them if their functional variant is listed, unless `use_out_as_primary` is true.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add.Tensor
    autograd:
      - add_.Tensor
    ```

    Bad (`_foreach_sign_` is not listed):

    ```yaml
    - func: _foreach_sign(Tensor[] self) -> Tensor[]
      dispatch:
        CPU: foreach_sign
    - func: _foreach_sign_(Tensor(a!)[] self) -> ()
      dispatch:
        CPU: foreach_sign_
      autogen: _foreach_sign.out
    ```

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - _foreach_sign
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add.Tensor
      - add_.Tensor
    autograd:
      - relu
    ```
    """
    if is_strict(backend):
        yield from _split(backend)
        yield from _without_in_place(backend)


def _split(backend: BackendFile) -> Iterator[Diagnostic]:
    if not backend.section("autograd"):
        return
    kernels = [item.name for item in backend.items if item.section in KERNELS]
    groups = variants_across(backend.reference, kernels, [item.name for item in backend.section("autograd")])
    forward: dict[object, list[BackendItem]] = {}
    for item in backend.items:
        if item.section in KERNELS:
            forward.setdefault(groups.get(item.name, item.name), []).append(item)
    for item in backend.section("autograd"):
        others = forward.get(groups.get(item.name, item.name), [])
        if not others:
            continue
        same = any(other.name == item.name for other in others)
        names = listed(list(dict.fromkeys(other.name for other in others)))
        message = (
            f"`{item.name}` is listed under `autograd`, and {names} under `{others[0].section}`: list all variants of an "
            "operator under one of them"
        )
        severity = Severity.ERROR if same else severity_of(backend.reference)
        place, related = backend.at(item.name_node), related_items(backend, others)
        yield Diagnostic(message, place, related, ops=(item.name,), severity=severity)


def _without_in_place(backend: BackendFile) -> Iterator[Diagnostic]:
    """Yield the operators over lists whose in-place variant torchgen cannot write."""
    primary = backend.get("use_out_as_primary")
    if backend.reference is None or (primary is not None and scalar_value(primary) is not False):
        return
    kernels = {item.name: item for item in backend.items if item.section in LISTS}
    for item in kernels.values():
        base, dot, overload = item.name.partition(".")
        in_place = f"{base}_{dot}{overload}"
        if base.startswith("_foreach_") and in_place in backend.reference.catalogue.by_name and in_place not in kernels:
            message = (
                f"`{item.name}` is listed without `{in_place}`, which returns nothing, so that torchgen cannot write it; "
                "list it, too"
            )
            severity = severity_of(backend.reference)
            yield Diagnostic(message, backend.at(item.name_node), ops=(item.name,), severity=severity)


def _known(backend: BackendFile, item: BackendItem) -> Known | None:
    return backend.reference.catalogue.by_name.get(item.name) if backend.reference is not None else None


@rule("ATN615", "composite-backend-operator", severity="info", pure=True, needs=(REFERENCE,))
def composite_backend_operator(backend: BackendFile) -> Iterator[Diagnostic]:
    """A backend has a kernel for an operator that PyTorch composes from others.

    An operator that is `CompositeImplicitAutograd` works on every backend whose other operators work, and has its
    derivative from them. A separate kernel in the backend hides them, so the operator loses its derivative unless one is
    registered by hand. That may be intended: pytorch/xla does it to lower an operator as a unit. Which operators these are
    changes from version to version, so nothing is reported if the installed torch may not be the tree's version.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - square
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - relu
    autograd:
      - square
    ```
    """
    reference = backend.reference
    if not is_strict(backend) or reference is None or not reference.certain:
        return
    for item in backend.items:
        known = _known(backend, item) if item.section in KERNELS else None
        if known is not None and known.implicit:
            message = (
                f"`{item.name}` is made of other operators in {reference.origin} (CompositeImplicitAutograd); a kernel "
                "of its own takes its derivative away, unless one is registered"
            )
            yield Diagnostic(message, backend.at(item.name_node), ops=(item.name,))

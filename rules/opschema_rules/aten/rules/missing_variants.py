"""Variants that an operator must have, and torchgen does not generate."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.text import Span
from opschema_rules.aten.differences import is_lone_out, name_of, torn
from opschema_rules.aten.findings import found
from opschema_rules.aten.groups import groups_of, returns_tensors
from opschema_rules.aten.model import NativeFile


@rule("ATN316", "functional-missing", pure=True, by_release=True)
def functional_missing(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator has several variants and no functional one.

    torchgen generates the functional variant of some operators, but not of structured ones, nor of those that are
    `CompositeImplicitAutograd` or bound by hand: "functional variant is required".

    Bad:

    ```yaml
    - func: sub_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```

    Good:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```

    Good, torchgen generates it:

    ```yaml
    - func: sub_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
      dispatch:
        CPU: sub_
      autogen: sub.Tensor
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: sub_out
    ```
    """
    groups = groups_of(native)
    for group in groups.all:
        if "functional" in group.variants or group in torn(groups) or not groups.complete:
            continue
        out = group.structured_out
        generated = any(item.kind == "functional" for item in group.generated)
        if (generated and out is None) or (not generated and len(group.variants) < 2):
            continue
        names = listed([name_of(entry) for entry in group.variants.values()])
        why = "torchgen generates none for structured operators" if out is not None else group.skipped
        message = f"{names} have no functional variant of the same signature" + (f"; {why}" if why else "")
        entry = out or next(iter(group.variants.values()))
        yield found(entry, entry.place.span, message)


@rule("ATN317", "lone-out", pure=True, by_release=True)
def lone_out(native: NativeFile) -> Iterator[Diagnostic]:
    """An out variant has no other variant.

    torchgen rejects an out variant without any other variant, unless it is `CompositeImplicitAutograd`. If there is a
    functional one with another signature, the finding is `variants-differ`.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good, composite:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
    ```
    """
    groups = groups_of(native)
    for group in groups.all:
        if len(group.variants) > 1 or "out" not in group.variants or not is_lone_out(group) or group in torn(groups):
            continue
        out = group.variants["out"]
        if groups.complete:
            message = f"`{out.name}` has no other variant; declare the functional one, of the same signature"
            yield found(out, out.place.span, message)


@rule("ATN318", "no-out-variant", pure=True, by_release=True)
def no_out_variant(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator returns no tensor and is not on torchgen's list of such operators.

    Every operator with kernels of its own needs an out variant, now or later, which is impossible if it returns no tensor.
    torchgen rejects such an operator unless `native_function_generation.py` lists it. That list is not part of this file,
    so the finding remains until the operator is on it.

    Bad:

    ```yaml
    - func: _count(Tensor self) -> int
      dispatch:
        CPU: count
    ```

    Good, composite:

    ```yaml
    - func: _count(Tensor self) -> int
    ```

    Good, listed:

    ```yaml
    - func: _nnz(Tensor self) -> int
      dispatch:
        SparseCPU: _nnz_sparse
    ```
    """
    for group in groups_of(native).all if native.torchgen.exceptions.known else ():
        base = group.base
        if base is None or base.schema is None or "out" in group.variants or "inplace" in group.variants:
            continue
        if returns_tensors(base.schema) or name_of(base) in native.torchgen.exceptions.no_out_variant or group.skipped:
            continue
        text, returns = base.schema_text, base.schema.returns
        span = Span(returns[0].span.start, returns[-1].span.end) if returns else base.schema.name_span
        message = (
            f"`{base.name}` returns no tensor, so that it can have no out variant; make it composite, or add it to "
            "`FUNCTIONAL_OPS_THAT_CANNOT_GET_AN_OUT_VARIANT` in torchgen"
        )
        yield found(base, text.span(span) if text is not None else base.place.span, message)

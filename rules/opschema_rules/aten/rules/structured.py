"""Structured kernels: the operators that may have one, and the fields that exclude one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import remove_key
from opschema_cli.suggestions import nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, respelling, yaml_fix
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.dispatch import IMPLICIT, NESTED, key_spans, keys_in
from opschema_rules.aten.signatures import kind_of, options_of


def is_structured(entry: NativeEntry) -> bool:
    """Whether the entry says `structured: True`."""
    return entry.flag("structured") is True


def delegate_of(entry: NativeEntry) -> Node | None:
    """The value of `structured_delegate`, if it is text."""
    node = entry.get("structured_delegate")
    return node if string(node) is not None else None


@rule("ATN151", "structured-kind", pure=True)
def structured_kind(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator without out arguments has `structured`, or one with out arguments has `structured_delegate`.

    The out variant holds the structured kernel; the functional and in-place operators delegate to it.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured: True
      dispatch:
        CPU: tanh
    ```

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured_delegate: tanh.out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: tanh.out
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: tanh_out
    ```
    """
    for entry in native.having("structured"):
        schema = entry.schema if is_structured(entry) else None
        if schema is not None and kind_of(schema) != "out":
            message = "`structured` belongs to the variant with out arguments; this one takes `structured_delegate`"
            yield found(entry, entry.fields["structured"][0], message)
    for entry in native.having("structured_delegate"):
        schema = entry.schema if delegate_of(entry) is not None else None
        if schema is not None and kind_of(schema) == "out":
            message = (
                "`structured_delegate` belongs to the variants without out arguments; this one takes `structured: True`"
            )
            yield found(entry, entry.fields["structured_delegate"][0], message)


@rule("ATN152", "structured-device-guard", fixable="unsafe", proof=WRITTEN, pure=True)
def structured_device_guard(native: NativeFile) -> Iterator[Diagnostic]:
    """A structured operator has `device_guard: False`, which its kernels ignore.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: tanh.out
      device_guard: False
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      device_guard: False
    ```
    """
    for entry in native.having("device_guard"):
        if entry.flag("device_guard") is not False:
            continue
        field = "structured" if is_structured(entry) else "structured_delegate"
        if field == "structured" or delegate_of(entry) is not None:
            edit = partial(remove_key, entry.file, entry.node, "device_guard")
            fix = yaml_fix(entry, "remove `device_guard`", edit, "the kernel may rely on there being no guard")
            related = entry.related(entry.fields[field][0], "structured by this")
            message = "structured kernels do not respect `device_guard: False`"
            yield found(entry, entry.fields["device_guard"][0], message, related, fix=fix)


_CLASS = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@rule("ATN153", "structured-inherits", fixable="safe", proof=WRITTEN, pure=True)
def structured_inherits(native: NativeFile) -> Iterator[Diagnostic]:
    """`structured_inherits` is used without `structured: True`, or does not name a class.

    It names the class that the structured kernel's class inherits from, without a namespace: `TensorIteratorBase`, which is
    the only one in PyTorch. Names that are almost it are reported, others are not known.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      structured_inherits: at::TensorIteratorBase
      dispatch:
        CPU: tanh_out
    - func: sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured_inherits: TensorIteratorBase
      dispatch:
        CPU: sinh_out
    ```

    Good:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      structured_inherits: TensorIteratorBase
      dispatch:
        CPU: tanh_out
    ```
    """
    for entry in native.having("structured_inherits"):
        key, node = entry.fields["structured_inherits"]
        text = string(node)
        if text is None:
            continue
        if entry.flag("structured") is False:
            yield found(entry, key, "`structured_inherits` needs `structured: True`")
        if _CLASS.fullmatch(text) is None:
            yield _unfit_class(entry, node, text)
        elif text != _ITERATOR and nearest(text, (_ITERATOR,), 0.8) is not None:
            yield found(entry, node, f"structured kernels cannot inherit from `{text}`; did you mean `{_ITERATOR}`?")


_ITERATOR = "TensorIteratorBase"


def _unfit_class(entry: NativeEntry, node: Node, text: str) -> Diagnostic:
    name = text.rpartition("::")[2].strip()
    fix = respelling(entry, node, Span(0, len(text)), name) if _CLASS.fullmatch(name) else None
    if "::" in text:
        return found(entry, node, f"`{text}` is written here without its namespace, which is the operator's", fix=fix)
    what = f"`{text}` is not a name of a class" if text else "`structured_inherits` is empty; it names a class"
    return found(entry, node, what, fix=fix)


_OPERATOR = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?", re.ASCII)


@rule("ATN154", "structured-delegate-name", fixable="safe", proof=WRITTEN, pure=True)
def structured_delegate_name(native: NativeFile) -> Iterator[Diagnostic]:
    """`structured_delegate` is not the name of an operator, or has a namespace.

    It names the out variant as `func` does, with its overload: `add.out`.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: tanh_out
    ```

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: aten::tanh.out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: tanh.out
    ```
    """
    for entry in native.having("structured_delegate"):
        node = delegate_of(entry)
        message, meant = _unfit_name(node.value) if node is not None else ("", "")
        if message and node is not None:
            fix = respelling(entry, node, Span(0, len(node.value)), meant) if meant else None
            yield found(entry, node, message, fix=fix)


def _unfit_name(text: str) -> tuple[str, str]:
    """Describe what is wrong with the name of an operator, with its probable meaning."""
    name = text.rpartition("::")[2].strip()
    meant = name if _OPERATOR.fullmatch(name) and not name.partition(".")[0].endswith("_out") else ""
    if not text:
        return "`structured_delegate` is empty; it names the out variant", ""
    if "::" in text:
        return f"`{text}` is written here without its namespace, which is the operator's", meant
    base = text.partition(".")[0]
    if base.endswith("_out") and _OPERATOR.fullmatch(text):
        hint = f"; the out variant is called `{text[:-4]}.out`" if base == text else ""
        return (
            f"no operator can be called `{base}`{hint}",
            f"{text[:-4]}.out" if base == text and base != "_out" else "",
        )
    return ("", "") if _OPERATOR.fullmatch(text) else (f"`{text}` is not a name of an operator", meant)


@rule("ATN155", "delegated-dispatch", fixable="unsafe", proof=WRITTEN, pure=True, by_release=True)
def delegated_dispatch(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator with `structured_delegate` has a kernel of its own for a key that the structured kernel serves.

    The kernels for CPU, CUDA, MPS, XPU and MTIA are generated from the out variant's.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: tanh.out
      dispatch:
        CPU, SparseCPU: tanh_any
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      structured_delegate: tanh.out
      dispatch:
        SparseCPU: tanh_sparse
    ```
    """
    for entry in native.having("structured_delegate"):
        for name, node, span in (
            keys_in(entry, native.torchgen.vocabulary.structured) if delegate_of(entry) is not None else ()
        ):
            related = entry.related(entry.fields["structured_delegate"][0], "delegated here")
            message = f"the kernel for `{name}` is that of the operator that this one delegates to"
            yield found(entry, entry.inner(node, span), message, related, fix=_key_removal(entry, node, name))


def _key_removal(entry: NativeEntry, node: Node, name: str) -> Fix | None:
    table = entry.get("dispatch")
    others = [other for other, _ in key_spans(node) if other != name]
    title, why = f"remove `{name}`", "the kernel is not called any more"
    if others:
        return respelling(entry, node, Span(0, len(node.value)), ", ".join(others), title, why)
    if table is None:
        return None
    alone = len(table.items) == 2
    target, key = (entry.node, "dispatch") if alone else (table, node.value)
    return yaml_fix(entry, title, lambda: remove_key(entry.file, target, key), why)


@rule("ATN157", "structured-composite", pure=True)
def structured_composite(native: NativeFile) -> Iterator[Diagnostic]:
    """A structured operator has a composite kernel, which structured operators do not support.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: tanh_out
        CompositeImplicitAutograd: math_tanh_out
    ```

    Good:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: tanh_out
        SparseCPU: tanh_sparse_out
    ```
    """
    for entry in native.having("structured"):
        for name, node, span in keys_in(entry, _COMPOSITE) if is_structured(entry) else ():
            related = entry.related(entry.fields["structured"][0], "structured by this")
            yield found(entry, entry.inner(node, span), f"`{name}` cannot be structured", related)


_COMPOSITE = frozenset((IMPLICIT, NESTED))


@rule("ATN158", "structured-without-kernel", severity="warning", pure=True)
def structured_without_kernel(native: NativeFile) -> Iterator[Diagnostic]:
    """A structured operator names no kernel: no backend of the tree could run it.

    torchgen accepts it. It generates the calls of the kernels from `dispatch` and from `ufunc_inner_loop`; without these
    there is only the meta function.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
    ```

    Good:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: tanh_out
    - func: mul.loop_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      ufunc_inner_loop: mul (All)
    ```
    """
    for entry in native.having("structured"):
        if entry.get("ufunc_inner_loop") is None and is_structured(entry):
            table = entry.get("dispatch")
            if table is None or (table.kind == "scalar" and not table.value) or (table.is_mapping and not table.items):
                yield found(entry, entry.fields["structured"][0], "a structured operator needs kernels in `dispatch`")


@rule("ATN156", "structured-factory", pure=True)
def structured_factory(native: NativeFile) -> Iterator[Diagnostic]:
    """A structured operator takes dtype, layout, device and pin_memory, which structured kernels do not support.

    torchgen fails when it writes the kernel's declaration ("structured kernels don't support TensorOptions yet").

    Bad:

    ```yaml
    - func: tanh_as(Tensor self, *, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory) -> Tensor
      structured_delegate: tanh_as.out
    ```

    Good:

    ```yaml
    - func: tanh_as(Tensor self, *, ScalarType? dtype=None) -> Tensor
      structured_delegate: tanh_as.out
    ```
    """
    for field in ("structured", "structured_delegate"):
        for entry in native.having(field):
            text = entry.schema_text
            if text is None or "pin_memory" not in text.text or not (is_structured(entry) or delegate_of(entry)):
                continue
            options = options_of(text.schema) if text.schema is not None else ()
            if options:
                message = "structured kernels take no dtype, layout, device and pin_memory together"
                span = Span(options[0].span.start, options[-1].span.end)
                related = entry.related(entry.fields[field][0], "structured by this")
                yield found(entry, text.span(span), message, related)

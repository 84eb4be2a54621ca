"""Tables under ``dispatch``: whether an operator may, or must, have one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.yaml_edit import insert_key, remove_key
from opschema_rules.aten.findings import found, func_text, yaml_fix
from opschema_rules.aten.model import DispatchItem, NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.dispatch import EXPLICIT, IMPLICIT
from opschema_rules.aten.rules.fields import kind_of
from opschema_rules.aten.signatures import is_tensor_like, options_of, out_arguments
from opschema_rules.aten.vocabulary import Vocabulary


@rule("ATN136", "redundant-dispatch", fixable="safe", proof=WRITTEN, pure=True)
def redundant_dispatch(native: NativeFile) -> Iterator[Diagnostic]:
    """A dispatch table contains only `CompositeImplicitAutograd`, which is the default without a table.

    The default kernel has the operator's name, followed by `_out` for an operator with out arguments. torchgen rejects a
    table that repeats this name, and one with another name (unless it contains `_symint`).

    Bad:

    ```yaml
    - func: tanhshrink(Tensor self) -> Tensor
      variants: function, method
      dispatch:
        CompositeImplicitAutograd: tanhshrink
    ```

    Bad:

    ```yaml
    - func: tanhshrink(Tensor self) -> Tensor
      dispatch:
        CompositeImplicitAutograd: math_tanhshrink
    ```

    Good:

    ```yaml
    - func: tanhshrink(Tensor self) -> Tensor
      variants: function, method
    - func: expand_twice(Tensor self, SymInt[] size) -> Tensor
      dispatch:
        CompositeImplicitAutograd: expand_twice_symint
    ```
    """
    for entry in native.having("dispatch"):
        items = entry.dispatch()
        if len(items) != 1 or items[0].key != IMPLICIT:
            continue
        table, schema = entry.get("dispatch"), entry.schema
        if schema is not None and table is not None and len(table.items) == 2:
            yield from _redundant(entry, items[0], default_kernel(schema))


def default_kernel(schema: OperatorSchema) -> str:
    """The kernel of an operator that has no table (``torchgen.api.cpp.name``)."""
    return f"{schema.name}_out" if out_arguments(schema) else schema.name


def _redundant(entry: NativeEntry, item: DispatchItem, default: str) -> Iterator[Diagnostic]:
    node = entry.file.document.follow(item.node)
    delegate = entry.get("structured_delegate")
    delegates = delegate is not None and kind_of(delegate) != "nothing"
    if item.kernel == default:
        message = f"the table only repeats the default: `{IMPLICIT}: {default}`; leave it out"
        edit = partial(remove_key, entry.file, entry.node, "dispatch")
        why = "the operator then has the kernel that it delegates to" if delegates else ""
        yield found(entry, entry.fields["dispatch"][0], message, fix=yaml_fix(entry, "remove `dispatch`", edit, why))
    elif not delegates and "_symint" not in item.kernel.rpartition("::")[2]:
        message = f"the only kernel is composite and must be called `{default}`: rename `{item.kernel}`, and leave the table out"
        yield found(entry, node, message)


@rule("ATN137", "manual-registration", pure=True)
def manual_registration(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator has `manual_kernel_registration` and a dispatch table, which then has no effect.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      manual_kernel_registration: True
      dispatch:
        CPU: tanh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      manual_kernel_registration: True
    ```
    """
    for entry in native.having("manual_kernel_registration"):
        table = entry.get("dispatch")
        if table is not None and table.is_mapping and entry.flag("manual_kernel_registration"):
            related = entry.related(entry.fields["manual_kernel_registration"][0], "registered by hand here")
            message = "`dispatch` has no effect beside `manual_kernel_registration`; keep one"
            yield found(entry, entry.fields["dispatch"][0], message, related)


@rule("ATN138", "factory-dispatch", fixable="unsafe", proof=WRITTEN, pure=True, by_release=True)
def factory_dispatch(native: NativeFile) -> Iterator[Diagnostic]:
    """A factory has no dispatch table, so it would be decomposed for `__torch_dispatch__`.

    Operators called `new_*` and `*_like`, and those that take dtype, layout, device and pin_memory but no tensor, need an
    explicit kernel, usually `CompositeExplicitAutograd`.

    Bad:

    ```yaml
    - func: new_eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    ```

    Good:

    ```yaml
    - func: new_eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
      dispatch:
        CompositeExplicitAutograd: new_eye
    ```
    """
    for entry in native.entries:
        table = entry.get("dispatch")
        text = func_text(entry)
        if (table is not None and table.is_mapping) or not ("new_" in text or "_like" in text or "pin_memory" in text):
            continue
        schema = entry.schema
        reason = _factory(schema, native.torchgen.vocabulary) if schema is not None and _is_plain(entry) else ""
        if reason and schema is not None:
            message = f"{reason}; a factory needs a kernel in `dispatch`, usually `{EXPLICIT}`"
            yield Diagnostic(message, entry.place, (), _table(entry, default_kernel(schema)), (entry.name,))


def _is_plain(entry: NativeEntry) -> bool:
    """Whether it is known to be neither structured nor a delegate."""
    delegate, table = entry.get("structured_delegate"), entry.get("dispatch")
    return (
        entry.flag("structured") is False
        and (delegate is None or kind_of(delegate) == "nothing")
        and (table is None or kind_of(table) == "nothing")
    )


def _factory(schema: OperatorSchema, vocabulary: Vocabulary) -> str:
    """The reason why torchgen takes an operator for a factory; empty if it does not."""
    if "_like" in vocabulary.checks:
        if schema.name.startswith("new_"):
            return f"`{schema.name}` is a factory by its name"
        if schema.name.endswith("_like"):
            return f"`{schema.name}` is a factory by its name"
    taken = {id(item) for item in out_arguments(schema)}
    tensors = any(is_tensor_like(item.type) for item in schema.arguments if id(item) not in taken)
    return "" if tensors or not options_of(schema) else f"`{schema.name}` takes a dtype and no tensor"


def _table(entry: NativeEntry, kernel: str) -> Fix | None:
    if entry.get("dispatch") is not None:
        return None
    why = f"`{kernel}` may need a derivative then, which derivatives.yaml gives"
    edit = partial(insert_key, entry.file, entry.node, "dispatch", {EXPLICIT: kernel})
    return yaml_fix(entry, f"add `dispatch` with `{EXPLICIT}: {kernel}`", edit, why)

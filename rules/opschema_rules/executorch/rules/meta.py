"""Kernels of an entry: their fields, and the dtypes and dim orders that they are registered for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.source.text import Edit
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, unknown
from opschema_rules.executorch.arg_meta import ALIASES, aliases_of, specs_of
from opschema_rules.executorch.kernel_types import arguments_of
from opschema_rules.executorch.model import OpEntry
from opschema_rules.executorch.proofs import READ

DTYPES = ("Byte", "Char", "Short", "Int", "Long", "Float", "Double", "Bool")
"""The dtypes of kernel keys (``ScalarType`` of ExecuTorch's ``codegen/model.py``)."""

MAX_KEYS = 1000
"""Maximum number of kernel keys of an entry to expand."""


@rule("EXE301", "kernel-form", pure=True)
def kernel_form(entry: OpEntry) -> Iterator[Diagnostic]:
    """An item of `kernels` without a C++ function that the code generator can declare.

    `kernels` is a list of mappings. Each has a `kernel_name` with at most three namespaces and an `arg_meta`, which is `null` or
    maps tensor arguments to pairs of a type alias and a dim order alias.

    Bad:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
    - op: sub.out
      kernels:
        - arg_meta: null
          kernel_name: acme::edge::kernels::cpu::sub_out
    ```

    Good:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: acme::edge::kernels::add_out
    ```
    """
    node = entry.get("kernels")
    if node is not None and not node.is_sequence and (node.kind != "scalar" or scalar_value(node) is not None):
        yield found(entry, node, "`kernels` must be a list")
    for item in entry.kernel_items:
        name = item.get("kernel_name") if item.is_mapping else None
        text = string(entry.file.document.follow(name)) if name is not None else None
        if not text:
            yield found(entry, name or item, "a kernel needs `kernel_name`, the name of a C++ function")
        elif text.count("::") > 3:
            message = f"`{text}` has {text.count('::')} namespaces; the code generator accepts at most 3"
            yield found(entry, name or item, message)
        elif not all(part.isidentifier() for part in text.split("::")):
            yield found(entry, name or item, f"`{text}` is not the name of a C++ function")


@rule("EXE302", "undefined-alias", fixable="unsafe", proof=READ, pure=True)
def undefined_alias(entry: OpEntry) -> Iterator[Diagnostic]:
    """An alias in `arg_meta` that the entry does not define.

    Each argument has a pair of aliases, one from `type_alias` and one from `dim_order_alias` of the same entry. The code generator
    fails on other values (`Undefined type alias`); a dtype cannot be written instead of an alias.

    Bad:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double]
      dim_order_alias:
        D0: [0, 1, 2, 3]
      kernels:
        - arg_meta:
            self: [T0, D0]
            other: [Double, D0]
            out: [T0, D1]
          kernel_name: torch::executor::add_out
    ```

    Good:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double]
      dim_order_alias:
        D0: [0, 1, 2, 3]
      kernels:
        - arg_meta:
            self: [T0, D0]
            other: [T0, D0]
            out: [T0, D0]
          kernel_name: torch::executor::add_out
    ```
    """
    for item in entry.kernel_items:
        for spec in specs_of(entry, item) or ():
            if spec.aliases is None:
                yield found(entry, spec.value, f"`{spec.key.value}` needs a pair `[type alias, dim order alias]`")
                continue
            for field, node in zip(ALIASES, spec.aliases, strict=True):
                known = aliases_of(entry, field)
                if node.value not in known:
                    yield _undefined(entry, field, node, list(known))


def _undefined(entry: OpEntry, field: str, node: Node, known: Sequence[str]) -> Diagnostic:
    only = known[0] if len(known) == 1 else nearest(node.value, known)
    edit = (
        FileEdit(entry.file.path, Edit(node.span, only)) if only and node.kind == "scalar" and not node.style else None
    )
    why = "a missing alias definition may be intended instead"
    fix = Fix(f"write `{only}`", (edit,), "unsafe", why) if edit is not None else None
    key = entry.key(field)
    related = (entry.related(key, "the aliases"),) if key is not None else ()
    message = f"`{node.value}` is not defined in this entry's `{field}`{did_you_mean(only)}"
    return found(entry, node, message, *related, fix=fix)


@rule("EXE303", "alias-value", pure=True)
def alias_value(entry: OpEntry) -> Iterator[Diagnostic]:
    """An alias whose value is not a list of dtypes or a dim order.

    A type alias is a list of `Byte`, `Char`, `Short`, `Int`, `Long`, `Float`, `Double` and `Bool`: other dtypes cannot be part of a
    [kernel key](../executorch.md#kernel-keys) (`codegen/model.py`). A dim order alias is a single list of integers, a permutation
    of the dimensions. Only aliases that a kernel uses are checked.

    Bad:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Half]
      dim_order_alias:
        D0: [[0, 1, 2, 3]]
      kernels:
        - arg_meta:
            self: [T0, D0]
          kernel_name: torch::executor::add_out
    ```

    Good:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Float]
        unused: [Half]
      dim_order_alias:
        D0: [0, 2, 3, 1]
      kernels:
        - arg_meta:
            self: [T0, D0]
          kernel_name: torch::executor::add_out
    ```
    """
    used = [spec.aliases for item in entry.kernel_items for spec in specs_of(entry, item) or () if spec.aliases]
    types, orders = ({pair[at].value for pair in used} for at in (0, 1))
    for name, (_, value) in aliases_of(entry, "type_alias").items():
        if name not in types:
            continue
        if not value.is_sequence:
            yield found(entry, value, f"`{name}` must be a list of dtypes; write `[{value.value}]`")
        for node in value.items if value.is_sequence else ():
            if node.value not in DTYPES:
                message = f"`{node.value}` is not a dtype of kernel keys; the code generator rejects it"
                yield unknown(entry, node, node.value, DTYPES, message)
    for name, (_, value) in aliases_of(entry, "dim_order_alias").items():
        if name in orders and not _is_order(value):
            yield found(entry, value, f"`{name}` must be a single list containing each of 0, 1, ... once")


def _order(value: Node) -> tuple[int, ...] | None:
    """Return the dim order of an alias; None if it is not one."""
    items = value.items if value.is_sequence else ()
    found = [item.value for item in items if item.kind == "scalar" and item.value.strip().isdecimal()]
    return tuple(map(int, found)) if value.is_sequence and len(found) == len(items) else None


def _is_order(value: Node) -> bool:
    order = _order(value)
    return order is not None and sorted(order) == list(range(len(order)))


@rule("EXE304", "meta-argument")
def meta_argument(entry: OpEntry) -> Iterator[Diagnostic]:
    """An `arg_meta` whose arguments are not the tensors of the operator in schema order.

    The code generator accepts any name and writes the [kernel key](../executorch.md#kernel-keys) in the order of `arg_meta`. At run
    time, the key is built from all tensors of the call, in schema order (`runtime/executor/method.cpp`). If they differ, the keys
    never match and the kernel is not found.

    Bad:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double]
      dim_order_alias:
        D0: [0, 1]
      kernels:
        - arg_meta:
            input: [T0, D0]
            alpha: [T0, D0]
          kernel_name: torch::executor::add_out
    ```

    Bad (`other` is missing):

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double]
      dim_order_alias:
        D0: [0, 1]
      kernels:
        - arg_meta:
            self: [T0, D0]
            out: [T0, D0]
          kernel_name: torch::executor::add_out
    ```

    Good:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double]
      dim_order_alias:
        D0: [0, 1]
      kernels:
        - arg_meta:
            self: [T0, D0]
            other: [T0, D0]
            out: [T0, D0]
          kernel_name: torch::executor::add_out
    ```

    Good (a call without `weight` has these two tensors):

    ```yaml
    - func: kit::norm.out(Tensor x, Tensor? weight, *, Tensor(a!) out) -> Tensor(a!)
      type_alias:
        T0: [Float]
      dim_order_alias:
        D0: [0, 1]
      kernels:
        - arg_meta:
            x: [T0, D0]
            out: [T0, D0]
          kernel_name: kit::norm_out
    ```
    """
    schema = entry.schema
    if schema is None:
        return
    always = [item.name for item in arguments_of(schema) if item.type.inner is None and item.type.name == "Tensor"]
    tensors = [item.name for item in arguments_of(schema) if item.type.base == "Tensor"]
    for item in entry.kernel_items:
        last = -1
        for spec in specs_of(entry, item) or ():
            name, argument = spec.key.value, schema.argument(spec.key.value)
            if argument is None:
                message = f"`{entry.name}` has no argument `{name}`"
                yield unknown(entry, spec.key, name, tensors, message, entry.declared())
            elif name not in tensors:
                message = f"`{name}` has type `{argument.type}`; `arg_meta` is only for tensor arguments"
                yield found(entry, spec.key, message, entry.declared())
            elif tensors.index(name) < last:
                message = (
                    f"`{name}` comes before `{tensors[last]}` in the schema; in this order the kernel is never found"
                )
                yield found(entry, spec.key, message, entry.declared())
            else:
                last = tensors.index(name)
        yield from _left_out(entry, item, always, tensors)


def _left_out(entry: OpEntry, item: Node, always: Sequence[str], tensors: Sequence[str]) -> Iterator[Diagnostic]:
    """The tensors of each call that a kernel's ``arg_meta``, whose names are all right, leaves out."""
    named = [spec.key.value for spec in specs_of(entry, item) or ()]
    missing = [name for name in always if name not in named]
    if named and missing and all(name in tensors for name in named):
        meta = item.pair("arg_meta")
        words = listed(missing)
        message = f"`arg_meta` leaves out {words} of `{entry.name}`; the kernel is never found"
        yield found(entry, meta[0] if meta is not None else item, message, entry.declared())


@rule("EXE305", "several-kernels", pure=True)
def several_kernels(entry: OpEntry) -> Iterator[Diagnostic]:
    """An entry with more than one kernel key.

    The code generator accepts one [kernel key](../executorch.md#kernel-keys) per operator (`Can't convert ETKernelIndex to
    BackendIndex`). It rejects a second item of `kernels`, and a kernel that uses a type alias with several dtypes. It also rejects
    two kernels with the same key, and an alias that lists a dtype twice (`Duplicate kernel key`).

    Bad:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
        - arg_meta: null
          kernel_name: torch::executor::fast_add_out
    ```

    Bad (two dtypes):

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double, Float]
      dim_order_alias:
        D0: [0, 1]
      kernels:
        - arg_meta:
            self: [T0, D0]
          kernel_name: torch::executor::add_out
    ```

    Good:

    ```yaml
    - op: add.out
      type_alias:
        T0: [Double]
      dim_order_alias:
        D0: [0, 1]
      kernels:
        - arg_meta:
            self: [T0, D0]
          kernel_name: torch::executor::add_out
    ```
    """
    seen: dict[object, Node] = {}
    for item in entry.kernel_items:
        keys = _keys(entry, item)
        if keys is None:
            return
        for key in keys:
            if key in seen:
                other = Related(entry.at(seen[key]), "the other kernel")
                related = (other,) if seen[key] is not item else ()
                yield found(entry, item, "this kernel has the same kernel key as another one", *related)
                return
            seen[key] = item
    if len(seen) > 1:
        node = entry.key("kernels")
        message = f"this entry expands to {count(len(seen), 'kernel key')}; the code generator accepts one per operator"
        yield found(entry, node or entry.node, message)


def _keys(entry: OpEntry, item: Node) -> list[object] | None:
    """The kernel keys of a kernel (``ETKernelKey.gen_from_yaml``); None if they are not known."""
    if not item.is_mapping:
        return None
    specs = specs_of(entry, item)
    if specs is None:
        meta = item.get("arg_meta")
        null = meta is None or (meta.kind == "scalar" and scalar_value(meta) is None)
        return ["default"] if null else None
    types, orders = aliases_of(entry, "type_alias"), aliases_of(entry, "dim_order_alias")
    parts = []
    for spec in specs:
        if spec.aliases is None or spec.aliases[0].value not in types or spec.aliases[1].value not in orders:
            return None
        order, dtypes = _order(orders[spec.aliases[1].value][1]), types[spec.aliases[0].value][1]
        if order is None or not dtypes.is_sequence:
            return None
        parts.append((spec.key.value, spec.aliases[0].value, order))
    used = list(dict.fromkeys(alias for _, alias, _ in parts))
    choices = [[node.value for node in types[alias][1].items] for alias in used]
    found_keys: list[object] = []
    for chosen in itertools.islice(itertools.product(*choices), MAX_KEYS):
        dtype = dict(zip(used, chosen, strict=True))
        found_keys.append(tuple((name, dtype[alias], order) for name, alias, order in parts))
    return found_keys

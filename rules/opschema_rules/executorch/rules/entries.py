"""Entries that ExecuTorch's code generator rejects or misreads."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, no_mappings, respelling
from opschema_rules.executorch.kernel_types import untranslated
from opschema_rules.executorch.model import KERNEL_FIELDS, OpEntry, OpList
from opschema_rules.executorch.proofs import READ


@rule("EXE101", "entry-form", pure=True)
def entry_form(listed: OpList) -> Iterator[Diagnostic]:
    """An entry of an operator list that does not name exactly one operator.

    Each entry is a mapping with `op`, the name and overload of an ATen operator, or `func`, the schema of any other operator.
    The code generator (`codegen/gen.py`) fails on other entries, and on an entry with both.

    Bad:

    ```yaml
    - kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - op: sub.out
      func: sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::sub_out
    ```

    Good:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```
    """
    yield from no_mappings(listed.file, "`op` or `func`")
    for entry in listed.entries:
        op, func = entry.key("op"), entry.key("func")
        if op is None and func is None:
            yield found(entry, entry.first, "this entry has neither `op` nor `func`")
        elif op is not None and func is not None:
            other = entry.related(func, "`func` is here")
            message = "this entry has both `op` and `func`; keep `op` for an ATen operator, otherwise `func`"
            yield found(entry, op, message, other)
        for name in ("op", "func"):
            node = entry.get(name)
            if node is not None and string(node) is None:
                yield found(entry, node, f"`{name}` must be a string")


@rule("EXE102", "unknown-entry-field", fixable="safe", proof=READ, pure=True)
def unknown_entry_field(listed: OpList) -> Iterator[Diagnostic]:
    """A field that the code generator does not know.

    The code generator rejects unknown fields of an entry (`leftover entries`) but ignores unknown fields in `kernels`. A misspelled
    `arg_meta` therefore makes the kernel apply to all dtypes; a misspelled `kernel_name` makes the code generator fail.

    Bad:

    ```yaml
    - op: add.out
      kernel:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - op: sub.out
      kernels:
        - arg_meta: null
          kernel_nam: torch::executor::sub_out
    - op: mul.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::mul_out
    ```

    Bad (not fixed automatically, since the kernel currently applies to all dtypes):

    ```yaml
    - op: add.out
      kernels:
        - arg_metas: {self: [T0, D0]}
          kernel_name: torch::executor::add_out
    ```

    Good (fields of torchgen):

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      variants: function
      tags: core
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```
    """
    for entry in listed.entries:
        for name, (key, _) in entry.written.items():
            if name not in entry.known_fields:
                meant = entry.misspelt.get(name)
                yield _unknown(entry, key, meant, f"unknown field `{name}`; the code generator rejects it")
        for item in entry.kernel_items:
            written = [key.value for key, _ in item.pairs()] if item.is_mapping else []
            for key, _ in item.pairs() if item.is_mapping else ():
                if key.value not in KERNEL_FIELDS:
                    meant = nearest(key.value, KERNEL_FIELDS.difference(written))
                    message = f"unknown kernel field `{key.value}`; the code generator ignores it"
                    yield _unknown(entry, key, meant, message)


def _unknown(entry: OpEntry, key: Node, meant: str | None, message: str) -> Diagnostic:
    edit = FileEdit(entry.file.path, Edit(key.span, meant)) if meant and not key.style else None
    fix = Fix(f"write `{meant}`", (edit,)) if edit is not None and meant != "arg_meta" else None
    return found(entry, key, f"{message}{did_you_mean(meant)}", fix=fix)


@rule("EXE103", "func-schema", fixable="safe", proof=READ, pure=True)
def func_schema(entry: OpEntry) -> Iterator[Diagnostic]:
    """A schema in `func` that torchgen rejects.

    The code generator parses `func` with torchgen, which stops at the first error without reporting its column. See
    [ATN201](ATN201.md) and the following rules for what torchgen requires.

    Bad:

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *,Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    Good:

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```
    """
    text = entry.schema_text
    for error in text.parsed.errors if text is not None else ():
        if text is None or text.is_own_type(error):
            continue
        edit = error.edit
        fix = respelling(entry, text.node, edit.span, edit.replacement) if edit is not None else None
        yield found(entry, text.span(error.span), error.message, fix=fix)


@rule("EXE104", "untranslated-type")
def untranslated_type(entry: OpEntry) -> Iterator[Diagnostic]:
    """An argument or result whose type ExecuTorch cannot express in C++, or an operator without a result.

    The code generator supports tensors, scalars, numbers, strings, `ScalarType` and `MemoryFormat`, and lists and optionals of
    them (`codegen/api/et_cpp.py`). It fails on other types, such as `Generator`, `Layout` and `Device`, and on an operator that
    returns nothing and has no `out` argument.

    Bad:

    ```yaml
    - func: kit::noise.out(Tensor x, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::noise_out
    - func: kit::reset(Tensor x) -> ()
      kernels:
        - arg_meta: null
          kernel_name: kit::reset
    ```

    Good:

    ```yaml
    - func: kit::noise.out(Tensor x, *, int? seed=None, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::noise_out
    - func: kit::fill.out(Tensor x, *, Tensor(a!)[] out) -> ()
      kernels:
        - arg_meta: null
          kernel_name: kit::fill_out
    ```
    """
    own = entry.schema
    if own is None or not entry.kernels:
        return
    for item in untranslated(own):
        text = entry.schema_text
        place = text.span(item.type_span) if text is not None else entry.place.span
        shown = f"{item.type} {item.name or ''}".strip()
        yield found(entry, place, f"ExecuTorch has no C++ type for `{shown}`: the code generator fails on it")
    if not own.returns and not any(item.kwarg_only and item.is_write for item in own.arguments):
        message = f"`{entry.name}` returns nothing and has no `out` argument: the code generator fails on it"
        yield found(entry, entry.place.span, message)


@rule("EXE105", "listed-twice", pure=True)
def listed_twice(listed: OpList) -> Iterator[Diagnostic]:
    """An operator that is listed twice.

    The code generator ignores namespaces when it compares names, so it rejects a file that lists both `kit::add.out` and
    `add.out` (`Duplicate func found in yaml`).

    Bad:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - func: kit::add.out(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::add_out
    ```

    Good:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - op: add.Scalar_out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_scalar_out
    ```
    """
    first: dict[str, OpEntry] = {}
    for entry in listed.entries:
        name = entry.qualified.rpartition("::")[2]
        before = first.setdefault(name, entry) if name else entry
        if before is entry:
            continue
        same = before.qualified == entry.qualified
        words = "is listed twice" if same else f"duplicates `{before.name}`"
        why = "" if same else "ignores namespaces and "
        message = f"`{entry.name}` {words}: the code generator {why}rejects the file"
        yield found(entry, entry.place.span, message, Related(before.place, "the first entry"))


@rule("EXE106", "no-kernel", severity="warning", pure=True)
def no_kernel(listed: OpList) -> Iterator[Diagnostic]:
    """An entry without a kernel, in a list whose other entries have one.

    The code generator registers nothing for it, even if the entry has a field `dispatch`, so a program that calls the operator
    fails to load (`Missing operator`). A list without any `kernels` only selects operators and is not checked.

    Bad:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::add_out
    - op: sub.out
    ```

    Good:

    ```yaml
    - op: add.out
    - op: sub.out
    - op: mul.out
    ```
    """
    for entry in listed.entries if listed.names_kernels else ():
        if entry.head is not None and entry.key("kernels") is None:
            message = f"`{entry.name}` has no `kernels`, so no kernel is registered for it"
            yield found(entry, entry.place.span, message, severity=Severity.WARNING)

"""Functionalization: every operator that writes has a functional variant, every view is of the form that can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.text import Span
from opschema_rules.aten.autogen import autogen_edits, wanted_names
from opschema_rules.aten.findings import found, yaml_fix
from opschema_rules.aten.functionalization import ungrouped
from opschema_rules.aten.groups import groups_of, returns_tensors
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import options_of, out_arguments, type_text
from opschema_rules.aten.traits import IMPLICIT, dispatch_of, is_in_place

_NON_FUNCTIONAL = "CompositeExplicitAutogradNonFunctional"


@rule("ATN371", "mutation-ungrouped", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def mutation_ungrouped(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator with kernels of its own writes to an argument, and has no functional and out variants.

    Functionalization replaces an operator that writes by its functional variant. So such an operator needs a functional and
    an out variant, which torchgen generates if `autogen` lists them; or it is `CompositeImplicitAutograd`. torchgen stops
    when it writes the kernels: "Expected composite implicit autograd kernel or non-modifying function".

    Bad:

    ```yaml
    - func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
      dispatch:
        CPU: scale_
    ```

    Good:

    ```yaml
    - func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
      dispatch:
        CPU: scale_
      autogen: scale, scale.out
    ```

    Good, composite:

    ```yaml
    - func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
    ```
    """
    for entry, group in ungrouped(groups_of(native)) if native.torchgen.exceptions.functionalizes else ():
        names, base = wanted_names(group), group.base
        if base is None or (names and any("autogen" in item.fields for item in group.entries)):
            continue  # what it lists is told by other rules
        tensors = entry.schema is not None and returns_tensors(entry.schema)
        if group.variants.get("mutable") is entry and not (names or group.skipped or tensors):
            continue  # that it can have no out variant is told by another rule
        line = f"`autogen: {', '.join(names)}`" if names else ""
        why = f"; torchgen generates them with {line}" if names else f", for {group.skipped}" if group.skipped else ""
        message = (
            f"`{entry.name}` writes, has kernels of its own, and is in no group with functional and out variants{why}"
        )
        fix = yaml_fix(base, f"write {line}", partial(autogen_edits, base, names)) if names else None
        yield found(entry, entry.place.span, message, fix=fix)


@rule("ATN372", "view-form", pure=True, by_release=True)
def view_form(native: NativeFile) -> Iterator[Diagnostic]:
    """A view with kernels of its own does not have the form that functionalization can replay.

    Its first argument is a `Tensor` and the only one that is aliased, and it returns one `Tensor` or `Tensor[]`.

    Bad:

    ```yaml
    - func: widen(int n, Tensor(a) self) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(int n, Tensor self) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```

    Bad, two results:

    ```yaml
    - func: widen(Tensor(a) self) -> (Tensor(a), Tensor(a))
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self) -> (Tensor, Tensor)
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```

    Good:

    ```yaml
    - func: widen(Tensor(a) self, int n) -> Tensor(a)[]
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int n) -> Tensor[]
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```
    """
    groups = groups_of(native)
    for view in groups.views if native.torchgen.exceptions.functionalizes else ():
        group, text, keys = groups.by_entry[view], view.schema_text, dispatch_of(view)
        copy = groups.copy_of(group)
        if copy is None or text is None or keys is None or IMPLICIT in keys:
            continue
        for span, message in _malformed(view, named=copy.schema is not None and _is_copy(copy, view)):
            yield found(view, text.span(span), f"`{view.name}` is a view with kernels of its own: {message}")


def _is_copy(copy: NativeEntry, view: NativeEntry) -> bool:
    """Whether it is called as copies are, so that torchgen writes its kernel."""
    names = [item.schema.name if item.schema is not None else "" for item in (copy, view)]
    return names[0] == f"{names[1]}_copy"


def _malformed(view: NativeEntry, *, named: bool) -> Iterator[tuple[Span, str]]:
    schema = view.schema
    if schema is None:
        return
    inputs = [item for item in schema.arguments if not (item.kwarg_only and item.is_write)]
    first = inputs[0] if inputs else None
    if first is None or type_text(first.type) != "Tensor":
        yield (
            first.span if first is not None else schema.name_span,
            "its first argument must be the `Tensor` that it aliases",
        )
    else:
        if first.alias is None:
            yield first.type_span, "its first argument must be the `Tensor` that it aliases"
        for item in inputs[1:]:
            if item.alias is not None:
                yield item.type_span, "no argument but the first can be aliased"
    if named and not is_in_place(view):
        if len(schema.returns) != 1:
            span = (
                Span(schema.returns[0].span.start, schema.returns[-1].span.end) if schema.returns else schema.name_span
            )
            yield span, f"it returns {len(schema.returns)} values, and must return one"
        elif type_text(schema.returns[0].type) not in ("Tensor", "Tensor[]"):
            yield schema.returns[0].type_span, "it must return a `Tensor` or a `Tensor[]`"


@rule("ATN373", "view-copy-kernel", pure=True, by_release=True)
def view_copy_kernel(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator that copies a view has no `CompositeExplicitAutogradNonFunctional` kernel.

    torchgen generates that kernel, which calls the view and clones its result, under the name in the dispatch table.

    Bad:

    ```yaml
    - func: widen(Tensor(a) self, int n) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int n) -> Tensor
      dispatch:
        CPU: widen_copy
      tags: view_copy
    ```

    Good:

    ```yaml
    - func: widen(Tensor(a) self, int n) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int n) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```
    """
    groups = groups_of(native)
    for view in groups.views if native.torchgen.exceptions.functionalizes else ():
        copy = groups.copy_of(groups.by_entry[view])
        keys = dispatch_of(copy) if copy is not None and not is_in_place(view) and _is_copy(copy, view) else None
        if copy is None or keys is None or _NON_FUNCTIONAL in keys:
            continue
        node = copy.key("dispatch")
        message = f"`{copy.name}` copies the view `{view.name}`, and must have a kernel for `{_NON_FUNCTIONAL}`"
        place = node.span if node is not None else copy.place.span
        yield found(copy, place, message, view.related(view.place.span, "the view"))


@rule("ATN374", "factory-out-name", pure=True, by_release=True)
def factory_out_name(native: NativeFile) -> Iterator[Diagnostic]:
    """The out variant of a factory does not call its tensor `out`.

    Functionalization replaces the out variant by the factory, and takes dtype, layout and device from the argument `out`,
    by that name. torchgen stops when it writes the kernel: "Failed to synthesize the expression".

    Bad:

    ```yaml
    - func: grid(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
      dispatch:
        CompositeExplicitAutograd: grid
    - func: grid.out(SymInt n, *, Tensor(a!) result) -> Tensor(a!)
      dispatch:
        CPU: grid_out
    ```

    Good:

    ```yaml
    - func: grid(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
      dispatch:
        CompositeExplicitAutograd: grid
    - func: grid.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: grid_out
    ```
    """
    for group in groups_of(native).all if native.torchgen.exceptions.functionalizes else ():
        functional, out = group.variants.get("functional"), group.variants.get("out")
        if not group.formed or functional is None or out is None or functional.schema is None or out.schema is None:
            continue
        lent = [item for item in options_of(functional.schema)[:3] if out.schema.argument(item.name) is None]
        named = out.schema.argument("out")
        written = next(iter(out_arguments(out.schema)), None)
        if (
            lent
            and written is not None
            and (named is None or named.type.name != "Tensor")
            and out.schema_text is not None
        ):
            what = listed([item.name for item in lent])
            message = f"`{written.name}` must be called `out`: torchgen takes {what} of `{functional.name}` from it by that name"
            yield found(
                out,
                out.schema_text.span(written.name_span),
                message,
                functional.related(functional.place.span, "the factory"),
            )

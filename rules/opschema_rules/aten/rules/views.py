"""Views: operators whose result aliases an argument, their in-place variants, and the operators that copy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml_edit import insert_item, insert_key
from opschema_rules.aten.differences import differences, name_of
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, yaml_fix
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import BaseName, base_name, full_name
from opschema_rules.aten.traits import IMPLICIT, IMPLICIT_NESTED, dispatch_of, is_in_place, is_view, tags_of

_RESIZES = ("resize_", "resize_as_")


@rule("ATN341", "inplace-view-name", pure=True)
def inplace_view_name(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator with the tag `inplace_view` does not have the name of an in-place operator.

    Its name must end in `_`, and there must be an operator with the name without `_`, the view itself.

    Bad, no in-place name:

    ```yaml
    - func: expand.inner(Tensor(a!) self, int size) -> Tensor(a!)
      dispatch:
        CPU: expand_inner
      tags: inplace_view
    ```

    Bad, no view:

    ```yaml
    - func: widen_(Tensor(a!) self, int size) -> Tensor(a!)
      dispatch:
        CPU: widen_
      tags: inplace_view
    ```

    Good:

    ```yaml
    - func: expand_(Tensor(a!) self, SymInt[] size, *, bool implicit=False) -> Tensor(a!)
      dispatch:
        CompositeExplicitAutograd: expand_
      tags: inplace_view
    ```

    Good, an operator that torchgen excepts:

    ```yaml
    - func: resize_(Tensor(a!) self, SymInt[] size) -> Tensor(a!)
      dispatch:
        CPU: resize_
      tags: inplace_view
    ```
    """
    groups = groups_of(native)
    for entry in native.having("tags"):
        schema = entry.schema
        if schema is None or "inplace_view" not in tags_of(entry):
            continue
        if full_name(schema) in _RESIZES or schema.name == "set_":
            continue
        name = base_name(schema.name)
        view = str(BaseName(name.base, dunder=name.dunder))
        if not name.inplace:
            message = f"`{entry.name}` is tagged `inplace_view`, and its name does not end in `_`"
            yield found(entry, entry.place.span, message, entry.related(_tag_place(entry, "inplace_view"), "the tag"))
        elif not groups.of_name(view) and groups.complete:
            message = f"`{entry.name}` is tagged `inplace_view`, and there is no view `{view}`"
            yield found(entry, entry.place.span, message, entry.related(_tag_place(entry, "inplace_view"), "the tag"))


def _tag_place(entry: NativeEntry, tag: str) -> Span:
    """Place of a tag."""
    node = entry.get("tags")
    if node is None:
        return entry.place.span
    return next((item.span for item in node.items if string(entry.file.document.follow(item)) == tag), node.span)


@rule("ATN342", "inplace-view-untagged", fixable="safe", proof=WRITTEN, pure=True)
def inplace_view_untagged(native: NativeFile) -> Iterator[Diagnostic]:
    """An in-place operator makes a view and is not tagged `inplace_view`.

    Bad:

    ```yaml
    - func: expand_(Tensor(a!) self, Tensor(b -> *) other) -> Tensor(a!)
    ```

    Good:

    ```yaml
    - func: expand_(Tensor(a!) self, Tensor(b -> *) other) -> Tensor(a!)
      tags: inplace_view
    ```
    """
    for entry in groups_of(native).views:
        if is_in_place(entry) and "inplace_view" not in tags_of(entry):
            message = f"`{entry.name}` is in-place and a view by its annotations; it must have the tag `inplace_view`"
            fix = _tag_fix(entry, "inplace_view")
            yield found(entry, _tags_place(entry), message, fix=fix)


def _tags_place(entry: NativeEntry) -> Span:
    node = entry.get("tags")
    return node.span if node is not None else entry.place.span


def _tag_fix(entry: NativeEntry, tag: str) -> Fix | None:
    """Add a tag."""
    node = entry.get("tags")
    title = f"add the tag `{tag}`"
    if node is None:
        return yaml_fix(entry, title, partial(insert_key, entry.file, entry.node, "tags", tag))
    if node.is_sequence:
        return yaml_fix(entry, title, partial(insert_item, entry.file, node, len(node.items), tag))
    written = f"[{', '.join([*tags_of(entry), tag])}]"
    return yaml_fix(entry, title, lambda: [Edit(node.span, written)]) if not (node.tag or node.anchor) else None


@rule("ATN343", "view-copy-missing", pure=True, by_release=True)
def view_copy_missing(native: NativeFile) -> Iterator[Diagnostic]:
    """A view has no copying counterpart.

    Each view with kernels of its own needs an operator with the suffix `_copy` and the same arguments, whose result aliases
    nothing. torchgen requires its declaration. If it is declared with other arguments, these are reported.

    Bad:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
      dispatch:
        CPU: widen
    ```

    Bad, with another signature:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, SymInt size) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```

    Good:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int size) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```

    Good, a view that is composite:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
    ```
    """
    for view in groups_of(native).views if native.torchgen.exceptions.functionalizes else ():
        schema, group = view.schema, groups_of(native).by_entry.get(view)
        keys = dispatch_of(view)
        if schema is None or group is None or keys is None or IMPLICIT in keys or "inplace_view" in tags_of(view):
            continue
        name = base_name(schema.name)
        if name.base.endswith("_inverse") or is_in_place(view) or groups_of(native).copy_of(group) is not None:
            continue
        wanted = str(BaseName(f"{name.base}_copy", dunder=name.dunder))
        wanted = f"{wanted}.{schema.overload}" if schema.overload else wanted
        other = groups_of(native).named.get(wanted)
        if other is not None:
            yield from _copy_differs(view, other)
        elif groups_of(native).complete:
            message = f"`{view.name}` is a view with kernels of its own; declare `{wanted}`, of the same arguments, which copies"
            table = view.key("dispatch")
            related = [view.related(table, "kernels of its own")] if table is not None else []
            yield found(view, view.place.span, message, *related)


def _copy_differs(view: NativeEntry, copy: NativeEntry) -> Iterator[Diagnostic]:
    here, there = copy.schema_text, view.schema_text
    if here is None or there is None or here.schema is None or there.schema is None:
        return
    for item in differences(here.schema, there.schema, name_of(view), is_copy=True):
        message = f"`{name_of(copy)}` is not the copy of the view `{name_of(view)}`: {item.message}"
        yield found(copy, here.span(item.here), message, view.related(there.span(item.there), "the view"))


@rule("ATN344", "view-copy-untagged", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def view_copy_untagged(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator that copies a view is not tagged `view_copy`.

    Bad:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int size) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
    ```

    Good:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int size) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
      tags: view_copy
    ```

    Good, no copy of a view:

    ```yaml
    - func: widen_copy(Tensor self, int size) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
    ```
    """
    for view in groups_of(native).views if native.torchgen.exceptions.functionalizes else ():
        group = groups_of(native).by_entry.get(view)
        copy = groups_of(native).copy_of(group) if group is not None and not is_in_place(view) else None
        if copy is not None and "view_copy" not in tags_of(copy):
            message = f"`{copy.name}` copies the view `{view.name}`, and must have the tag `view_copy`"
            related = view.related(view.place.span, "the view")
            yield found(copy, _tags_place(copy), message, related, fix=_tag_fix(copy, "view_copy"))


@rule("ATN345", "view-composite", pure=True, by_release=True)
def view_composite(native: NativeFile) -> Iterator[Diagnostic]:
    """A view is composite, and its in-place variant is not.

    Both have a `CompositeImplicitAutograd` kernel or neither has, and the same holds for
    `CompositeImplicitAutogradNestedTensor`.

    Bad:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
    - func: widen_(Tensor(a!) self, int size) -> Tensor(a!)
      dispatch:
        CPU: widen_
      tags: inplace_view
    ```

    Good:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
    - func: widen_(Tensor(a!) self, int size) -> Tensor(a!)
      tags: inplace_view
    ```
    """
    for view in groups_of(native).views if native.torchgen.exceptions.functionalizes else ():
        group = groups_of(native).by_entry.get(view)
        inplace = group.variants.get("inplace") if group is not None else None
        if inplace is None or inplace is view or not is_view(inplace):
            continue
        keys, others = dispatch_of(view), dispatch_of(inplace)
        for key in (IMPLICIT, IMPLICIT_NESTED):
            if keys is None or others is None or key not in keys or key in others:
                continue
            node = inplace.key("dispatch")
            message = f"`{view.name}` has a {key} kernel, and its in-place variant `{inplace.name}` has none"
            place = node.span if node is not None else inplace.place.span
            yield found(inplace, place, message, view.related(view.place.span, "the view"))


@rule("ATN346", "view-name", pure=True, by_release=True)
def view_name(native: NativeFile) -> Iterator[Diagnostic]:
    """Two operators have the same name and signature as one view, once `_copy` is removed from their names.

    torchgen pairs a view with the operator that copies it by removing `_copy` from the name (and replacing `_scatter` by
    `_inverse`). The rest must be different for all views, and for all operators of one kind that are not views.

    Bad:

    ```yaml
    - func: widen(Tensor self, int size) -> Tensor
      dispatch:
        CPU: widen
    - func: widen_copy(Tensor self, int size) -> Tensor
      dispatch:
        CompositeExplicitAutogradNonFunctional: widen_copy
    ```

    Bad, two views:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
    - func: widen_copy(Tensor(a) self, int size) -> Tensor(a)
    ```

    Good:

    ```yaml
    - func: widen(Tensor(a) self, int size) -> Tensor(a)
    - func: widen_copy(Tensor self, int size) -> Tensor
      tags: view_copy
    ```
    """
    for key, copies in groups_of(native).copies.items() if native.torchgen.exceptions.functionalizes else ():
        plain = groups_of(native).by_key.get(key)
        seen: dict[str, NativeEntry] = {}
        for group in [*([plain] if plain is not None else ()), *copies]:
            for kind, entry in group.variants.items():
                role = ("inplace view" if is_in_place(entry) else "view") if is_view(entry) else kind
                first = seen.setdefault(role, entry)
                if first is not entry:
                    message = f"`{entry.name}` and `{first.name}` have one signature to torchgen, which leaves `_copy` out of names"
                    yield found(entry, entry.place.span, message, first.related(first.place.span, "the other one"))


@rule("ATN347", "view-beside-functional", pure=True, by_release=True)
def view_beside_functional(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator is a view by its annotations, and another variant of it is not.

    An annotation without `!` on a return, or one that ends in `-> *`, makes an operator a view to torchgen. It then treats
    the functional variant as the operator that copies: "view_copy name must end with '_copy' or '_scatter'".

    Bad:

    ```yaml
    - func: tanh(Tensor[] tensors) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor(b -> *)[] tensors, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor[] tensors) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```
    """
    for view in groups_of(native).views if native.torchgen.exceptions.functionalizes else ():
        group = groups_of(native).by_entry[view]
        other = group.variants.get("functional")
        if other is None or other is view or view not in group.entries or is_in_place(view) or is_view(other):
            continue
        if view.schema_text is None:
            continue
        slots = view.schema.slots if view.schema is not None else ()
        span = next((item.type_span for item in slots if item.alias is not None and not item.alias.write), None)
        message = f"`{view.name}` is a view by its annotations, and its variant `{other.name}` is none"
        place = view.schema_text.span(span) if span is not None else view.place.span
        yield found(view, place, message, other.related(other.place.span, "no view"))

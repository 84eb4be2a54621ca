"""Structured operators: the out variant has the kernels, and the others delegate to it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml_edit import insert_key, set_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.differences import name_of, torn
from opschema_rules.aten.findings import found, yaml_fix
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.dispatch import keys_in
from opschema_rules.aten.traits import in_structured_group, is_structured


@rule("ATN312", "delegate-unknown", fixable="safe", proof=WRITTEN, pure=True)
def delegate_unknown(native: NativeFile) -> Iterator[Diagnostic]:
    """`structured_delegate` names an operator that is not declared.

    It names the out variant, which is the structured kernel. torchgen rejects a name that it does not find.

    Bad:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.oot
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```

    Good:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```
    """
    groups, known = groups_of(native), _structured(native)
    for number, entry in enumerate(_undeclared(native)):
        name, node = entry.text("structured_delegate"), entry.get("structured_delegate")
        if name is None or node is None:
            continue
        group = groups.by_entry.get(entry)
        out = group.structured_out if group is not None else None
        meant = f"; its out variant is `{name_of(out)}`" if out is not None else ""
        if out is None and number < _MOST_HINTS:
            meant = did_you_mean(nearest(name, known))
        yield found(
            entry,
            node,
            f"`{entry.name}` delegates to `{name}`, which is not declared{meant}",
            *([out.related(out.place.span, "the out variant")] if out is not None else ()),
            fix=_delegate_fix(entry, out),
        )


_MOST_HINTS = 100
"""Names of one file for which a near one is sought."""


def _undeclared(native: NativeFile) -> Iterator[NativeEntry]:
    """The entries whose delegate is certainly not declared."""
    groups = groups_of(native)
    for entry in native.having("structured_delegate"):
        name = entry.text("structured_delegate")
        if name is None or entry.schema is None or name in groups.named or not _is_name(name):
            continue
        if groups.complete and groups.by_entry.get(entry) not in torn(groups):  # else its out variant is told to differ
            yield entry


def _is_name(text: str) -> bool:
    """Whether it is an operator's name in form; others are reported as such."""
    return bool(text) and "::" not in text and not text.partition(".")[0].endswith("_out")


def _structured(native: NativeFile) -> list[str]:
    return [name_of(entry) for entry in native.having("structured") if is_structured(entry)]


def _delegate_fix(entry: NativeEntry, out: NativeEntry | None) -> Fix | None:
    node = entry.get("structured_delegate")
    if out is None or node is None:
        return None
    name = name_of(out)
    return yaml_fix(entry, f"delegate to `{name}`", partial(set_value, entry.file, node, name))


@rule("ATN313", "delegate-unstructured", fixable="unsafe", proof=WRITTEN, pure=True)
def delegate_unstructured(native: NativeFile) -> Iterator[Diagnostic]:
    """`structured_delegate` names an operator that is not structured.

    The operator that is delegated to must have `structured: True`. If several variants delegate to one out variant, there
    is one finding, at the out variant.

    Bad:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: sub_out
    ```

    Good:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```
    """
    groups = groups_of(native)
    own: dict[NativeEntry, list[NativeEntry]] = {}
    for entry in native.having("structured_delegate"):
        name, node = entry.text("structured_delegate"), entry.get("structured_delegate")
        delegate = groups.named.get(name or "")
        if node is None or entry.schema is None or delegate is None or delegate.flag("structured") is not False:
            continue
        if any(first is delegate for _, first in groups.repeats):
            continue  # the other one may be structured
        group = groups.by_entry.get(entry)
        if group is not None and group.variants.get("out") is delegate:
            own.setdefault(delegate, []).append(entry)
            continue
        out = group.structured_out if group is not None else None
        meant = f"; its out variant is `{name_of(out)}`" if out is not None else ""
        yield found(
            entry,
            node,
            f"`{entry.name}` delegates to `{name}`, which is not structured{meant}",
            delegate.related(delegate.place.span, "not structured"),
            fix=_delegate_fix(entry, out),
        )
    for out, entries in own.items():
        yield _unstructured(out, entries)


def _unstructured(out: NativeEntry, entries: list[NativeEntry]) -> Diagnostic:
    names = listed([entry.name for entry in entries])
    verb = "delegates" if len(entries) == 1 else "delegate"
    message = f"{names} {verb} to `{out.name}`, which must say `structured: True`"
    node = out.get("structured")
    why = "torchgen then looks for a meta function of this operator in C++"
    fix = yaml_fix(out, "say `structured: True`", partial(_structured_edits, out), why)
    related = [
        entry.related(value.span, "it delegates") for entry in entries if (value := entry.get("structured_delegate"))
    ]
    return found(out, node if node is not None else out.place.span, message, *related, fix=fix)


def _structured_edits(out: NativeEntry) -> list[Edit]:
    node = out.get("structured")
    if node is not None:
        return [Edit(node.span, "True")]
    edits = insert_key(out.file, out.node, "structured", value=True, after="func")
    return [Edit(item.span, item.replacement.replace("true", "True")) for item in edits]  # as torchgen's files have it


@rule("ATN314", "delegate-wrong", fixable="safe", proof=WRITTEN, pure=True)
def delegate_wrong(native: NativeFile) -> Iterator[Diagnostic]:
    """`structured_delegate` names the structured kernel of another operator.

    The delegate is the out variant of the same signature: "delegates to ... but its actual delegate is ...". If the
    operator has no out variant at all, torchgen accepts it, and then writes no kernel for it.

    Bad:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: add.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```

    Good:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```
    """
    groups = groups_of(native)
    for entry in native.having("structured_delegate"):
        name, node = entry.text("structured_delegate"), entry.get("structured_delegate")
        group, delegate = groups.by_entry.get(entry), groups.named.get(name or "")
        if node is None or group is None or delegate is None or not is_structured(delegate):
            continue
        if groups.by_entry[delegate] is group or group in torn(groups):
            continue
        out = group.variants.get("out")
        if out is None:
            what = f"`{entry.name}` has no out variant in this file"
        else:
            what = f"its out variant is `{name_of(out)}`" + ("" if is_structured(out) else ", which is not structured")
        yield found(
            entry,
            node,
            f"`{entry.name}` delegates to `{name}`, which has another signature; {what}",
            *([out.related(out.place.span, "the out variant")] if out is not None else ()),
            delegate.related(delegate.place.span, "the delegate"),
            fix=_delegate_fix(entry, group.structured_out),
        )


@rule("ATN315", "half-structured", fixable="unsafe", proof=WRITTEN, pure=True, by_release=True)
def half_structured(native: NativeFile) -> Iterator[Diagnostic]:
    """The out variant is structured, and another variant does not delegate to it.

    All variants of a structured operator have `structured_delegate`.

    Bad:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```

    Good:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
    ```
    """
    for out in native.having("structured"):
        group = groups_of(native).by_entry.get(out)
        if group is None or group.structured_out is not out or "functional" not in group.variants:
            continue
        for entry in group.entries:
            if entry is out or in_structured_group(entry):
                continue
            yield _half_structured(entry, out)


def _half_structured(entry: NativeEntry, out: NativeEntry) -> Diagnostic:
    message = f"`{entry.name}` does not delegate to its structured out variant `{out.name}`"
    related = [out.related(out.place.span, "structured")]
    for name, node, span in keys_in(
        entry, entry.owner.torchgen.vocabulary.structured
    ):  # what delegates may have none of these
        related.append(entry.related(entry.inner(node, span), f"its own kernel for `{name}`"))
    edit = partial(insert_key, entry.file, entry.node, "structured_delegate", value=name_of(out), after="func")
    why = "the kernels of the out variant then replace its own"
    fix = yaml_fix(entry, f"add `structured_delegate: {name_of(out)}`", edit, why) if len(related) == 1 else None
    return found(entry, entry.place.span, message, *related, fix=fix)


@rule("ATN322", "structured-generated-kernel", pure=True)
def structured_generated_kernel(native: NativeFile) -> Iterator[Diagnostic]:
    """A structured operator names a kernel that torchgen generates for it.

    The kernels for `Meta` and `CompositeExplicitAutogradNonFunctional` of a structured operator are generated from its meta
    function. torchgen stops when it writes them: "Do not explicitly specify Meta dispatch key on structured functions".

    Bad:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
        Meta: sub_out_meta
    ```

    Good, a key that is another one:

    ```yaml
    - func: sub.Tensor(Tensor self, Tensor other) -> Tensor
      structured_delegate: sub.out
    - func: sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sub_out
        SparseMeta: sub_out_sparse_meta
    ```
    """
    for out in native.having("structured"):
        for item in out.dispatch() if is_structured(out) else ():
            if item.key in ("Meta", "CompositeExplicitAutogradNonFunctional"):
                message = f"torchgen generates the `{item.key}` kernel of a structured operator; leave it out"
                start = item.key_node.value.find(item.key)
                yield found(out, out.inner(item.key_node, Span(start, start + len(item.key))), message)

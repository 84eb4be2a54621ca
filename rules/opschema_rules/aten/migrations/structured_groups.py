"""Groups of entries that can become one structured kernel and its delegates, and the dispatch keys that delegates lose."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from opschema_cli.phrases import listed
from opschema_rules.aten.groups import Group
from opschema_rules.aten.model import DispatchItem, NativeEntry, NativeFile
from opschema_rules.aten.signatures import full_name, options_of, out_arguments
from opschema_rules.aten.traits import dispatch_of, tags_of

COMPOSITE = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")
_IMPLICIT = ("CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor")
_GENERATED = ("Meta", "CompositeExplicitAutogradNonFunctional")
"""The keys that torchgen fills in itself for a structured kernel."""


def dropped_items(native: NativeFile, entry: NativeEntry, keep: Collection[str]) -> list[DispatchItem]:
    """The dispatch keys that a delegate loses: those that the structured kernel generates."""
    keys = native.torchgen.vocabulary.structured | {*COMPOSITE} - {*keep}
    return [item for item in entry.dispatch() if item.key in keys]


def outs_of(native: NativeFile, out: NativeEntry) -> list[str]:
    """The out entry's kernels that become structured."""
    found = (item.kernel for item in out.dispatch() if item.key in native.torchgen.vocabulary.structured)
    return list(dict.fromkeys(found))


def is_ported(native: NativeFile, group: Group, keep: Collection[str]) -> bool:
    """Whether the group is a structured kernel and delegates without any of its keys."""
    out = group.variants.get("out")
    if out is None or out.schema is None or out.flag("structured") is not True:
        return False
    name = full_name(out.schema)
    delegates = [entry for kind, entry in group.variants.items() if kind in ("functional", "inplace")]
    return all(
        entry.text("structured_delegate") == name and not dropped_items(native, entry, keep) for entry in delegates
    )


def refusal(native: NativeFile, group: Group, keep: Collection[str]) -> str:
    """The reason why a group cannot be ported; empty if it can."""
    return next(_refusals(native, group, keep), "")


def _refusals(native: NativeFile, group: Group, keep: Collection[str]) -> Iterator[str]:
    for kind in ("out", "functional"):
        if kind not in group.variants:
            yield f"its group has no {kind} entry, which a structured kernel needs: {_names(group)}"
            return
    out = group.variants["out"]
    if group.repeated or any(len(native.by_name.get(entry.name, ())) > 1 for entry in group.entries):
        yield f"an operator of its group is written twice: {_names(group)}"
    if "mutable" in group.variants:
        yield f"its group has the mutable entry `{group.variants['mutable'].name}`, which cannot delegate"
    if "view_copy" in tags_of(group.variants["functional"]):
        yield f"`{group.variants['functional'].name}` copies a view (`view_copy`): torchgen writes its kernel"
    yield from _of_schemas(group)
    yield from _of_out_keys(native, out)
    for entry in group.entries:
        yield from _of_entry(native, entry, out, keep)


def _of_schemas(group: Group) -> Iterator[str]:
    schemas = [entry.schema for entry in group.entries if entry.schema is not None]
    if any(options_of(schema) for schema in schemas):
        yield "structured kernels take no `dtype`, `layout`, `device` and `pin_memory` together (`TensorOptions`)"
    lists = [item.name for schema in schemas for item in out_arguments(schema) if item.type.inner is not None]
    if lists:
        yield f"structured kernels write tensors, and {listed(lists)} is none"


def _of_out_keys(native: NativeFile, out: NativeEntry) -> Iterator[str]:
    keys = dispatch_of(out) or frozenset()
    composite = sorted(keys.intersection(_IMPLICIT))
    if composite:
        yield f"`{out.name}` is {composite[0]}, and structured kernels are for backends"
    elif not keys & native.torchgen.vocabulary.structured:
        yield f"`{out.name}` has no kernel for {listed(sorted(native.torchgen.vocabulary.structured), 'or')}"


def _of_entry(native: NativeFile, entry: NativeEntry, out: NativeEntry, keep: Collection[str]) -> Iterator[str]:
    if entry.flag("device_guard", default=True) is not True:
        yield f"`{entry.name}` has `device_guard: False`, which structured kernels do not respect"
    if "manual_kernel_registration" in entry.fields:
        yield f"`{entry.name}` is registered by hand (`manual_kernel_registration`)"
    delegate = entry.text("structured_delegate")
    if entry.get("structured_delegate") is not None and (out.schema is None or delegate != full_name(out.schema)):
        yield f"`{entry.name}` delegates to `{delegate}` already"
    keys = [item.key for item in entry.dispatch()]
    generated = [key for key in keys if key in _GENERATED and (entry is out or key not in COMPOSITE or key in keep)]
    if generated:
        yield f"`{entry.name}` has {listed(generated)}, which is generated for structured kernels"
    lost = _lost(native, entry, out)
    if lost:
        yield f"`{entry.name}` has kernels for {listed(lost)}, and `{out.name}` has none: they would be lost"


def _lost(native: NativeFile, entry: NativeEntry, out: NativeEntry) -> Sequence[str]:
    """Return the keys of a delegate that nothing would replace."""
    known = dispatch_of(out) or frozenset()
    return sorted({item.key for item in entry.dispatch()} & native.torchgen.vocabulary.structured - known)


def _names(group: Group) -> str:
    return listed([entry.name for entry in group.entries])

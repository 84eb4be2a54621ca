"""Needs of torchgen's functionalization for operators that write or alias: a group with a functional variant, or a view's."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_rules.aten.differences import has_twice, needs_functional, torn
from opschema_rules.aten.groups import Group, Groups
from opschema_rules.aten.model import NativeEntry
from opschema_rules.aten.signatures import BaseName, VariantKind, base_name, full_name, view_key
from opschema_rules.aten.traits import IMPLICIT, dispatch_of, in_structured_group, is_in_place, is_view, tags_of

_WRITING: tuple[VariantKind, ...] = ("inplace", "out", "mutable")


def ungrouped(groups: Groups) -> Iterator[tuple[NativeEntry, Group]]:
    """Yield the operators with kernels that write and are in no group, so that nothing can replace them."""
    if not groups.complete:
        return
    views = {view_key(groups.by_entry[view].key) for view in groups.views if not is_in_place(view)}
    for group in groups.all:
        if group.formed or "scratch" in group.variants or not any(kind in group.variants for kind in _WRITING):
            continue
        if group in torn(groups):
            continue
        if "functional" not in group.variants and needs_functional(group):
            continue  # told as such
        for kind in _WRITING:
            entry = group.variants.get(kind)
            if entry is None or _is_handled(entry) or _has_doubtful(groups, group):
                continue
            if not is_view(entry) or not (view_key(group.key) in views or _is_reported(groups, entry)):
                yield entry, group


def _has_doubtful(groups: Groups, group: Group) -> bool:
    """Whether two arguments of one name may keep an operator from being in the group."""
    name = group.key[0]
    entries = [*groups.of_name(str(name)), *groups.of_name(str(name._replace(inplace=True)))]
    return any(entry.schema is not None and has_twice(entry.schema) for entry in entries)


def _is_reported(groups: Groups, entry: NativeEntry) -> bool:
    """Whether an in-place view has no tag, or no view of its name; torchgen excepts ``set_`` from both."""
    if entry.schema is not None and entry.schema.name == "set_":
        return False
    name = base_name(entry.schema.name) if entry.schema is not None else BaseName("")
    return "inplace_view" not in tags_of(entry) or not groups.of_name(str(BaseName(name.base, dunder=name.dunder)))


def _is_handled(entry: NativeEntry) -> bool:
    """Whether an operator without a group is composite, a view that is not in-place, or excepted."""
    schema, excepted = entry.schema, entry.owner.torchgen.exceptions
    keys = dispatch_of(entry)
    if schema is None or keys is None or IMPLICIT in keys or in_structured_group(entry):
        return True  # that a delegate is the wrong one is told by other rules
    if is_view(entry) and not is_in_place(entry):
        return True
    names = {schema.name, full_name(schema)}
    known = (excepted.lone_outs, excepted.lone_inplace, excepted.no_out_variant, excepted.not_functionalized)
    return any(names & listed for listed in known)

"""Variants of one operator: the entries with one signature, and those that torchgen generates to complete them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.signatures import (
    BaseName,
    SignatureKey,
    VariantKind,
    base_name,
    full_name,
    functional_of,
    is_tensor_like,
    kind_of,
    out_name,
    out_of,
    out_overload,
    signed,
    view_base,
    view_key,
)
from opschema_rules.aten.traits import IMPLICIT, autogen_of, dispatch_of, is_structured, is_view, tags_of


class Generated(msgspec.Struct, frozen=True, dict=True):
    """An operator that torchgen writes itself, from the entry ``base``."""

    kind: VariantKind
    name: str
    base: NativeEntry

    @cached_property
    def schema(self) -> OperatorSchema | None:
        """Its schema; None if torchgen cannot make it."""
        schema = self.base.schema
        if schema is None:
            return None
        return functional_of(schema) if self.kind == "functional" else out_of(schema)


class Group(msgspec.Struct, eq=False, dict=True):
    """The entries of one signature, one of each kind; ``repeated`` are further ones of a kind, which torchgen refuses."""

    key: SignatureKey
    variants: dict[VariantKind, NativeEntry] = msgspec.field(default_factory=dict)
    repeated: list[tuple[NativeEntry, NativeEntry]] = msgspec.field(default_factory=list)

    @property
    def entries(self) -> list[NativeEntry]:
        """Its entries, in torchgen's order."""
        return [self.variants[kind] for kind in ("functional", "out", "inplace", "mutable") if kind in self.variants]

    @cached_property
    def skipped(self) -> str:
        """The reason why torchgen generates nothing for it; empty if it may."""
        entries = list(self.variants.values())
        if all("manual_cpp_binding" in item.fields and item.flag("manual_cpp_binding") for item in entries):
            return "it is bound by hand (`manual_cpp_binding`)"
        if any(is_view(item) and (item.schema is None or item.schema.name != "set_") for item in entries):
            return "it is a view"
        if all(IMPLICIT in (dispatch_of(item) or ()) for item in entries) and not any(
            "core" in tags_of(item) for item in entries
        ):
            return f"it is {IMPLICIT} and not tagged `core`"
        if "out" in self.variants and len(self.variants) == 1:
            return "it has an out variant alone"
        inplace = self.variants.get("inplace")
        if inplace is not None and inplace.name in inplace.owner.torchgen.exceptions.lone_inplace:
            return f"`{inplace.name}` is an exception in torchgen"
        return ""

    @property
    def base(self) -> NativeEntry | None:
        """The entry that torchgen generates from; None in a group that has only scratch operators."""
        for kind in ("mutable", "inplace", "out", "functional"):
            if kind in self.variants:
                return self.variants[kind]
        return None

    @cached_property
    def wanted(self) -> tuple[Generated, ...]:
        """Schemas that torchgen generates if the base entry's ``autogen`` names an out variant."""
        base = self.base
        if base is None or base.schema is None or self.skipped or not base.owner.torchgen.exceptions.known:
            return ()
        found: list[Generated] = []
        if "out" not in self.variants:
            if not (kind_of(base.schema) == "inplace" or returns_tensors(base.schema)):
                return ()
            found.append(Generated("out", _named(out_name(base.schema), out_overload(base.schema)), base))
        if "functional" not in self.variants:
            name = base_name(base.schema.name)
            made = BaseName(name.base, dunder=name.dunder, functional="mutable" in self.variants)
            found.append(Generated("functional", _named(str(made), base.schema.overload), base))
        return tuple(found)

    @cached_property
    def generated(self) -> tuple[Generated, ...]:
        """The schemas that torchgen generates."""
        if "out" in self.variants:
            return () if "functional" in self.variants else self.wanted
        base = self.base
        if base is None or "autogen" not in base.fields or not any("out" in name for name, _ in autogen_of(base)):
            return ()
        return self.wanted if any(item.kind == "out" for item in self.wanted) else ()

    @property
    def structured_out(self) -> NativeEntry | None:
        """The out variant, if it is a structured kernel."""
        out = self.variants.get("out")
        return out if out is not None and is_structured(out) else None

    @property
    def formed(self) -> bool:
        """Whether torchgen makes a ``NativeFunctionsGroup`` from it."""
        kinds = {*self.variants, *(item.kind for item in self.generated)}
        return "out" in kinds and "functional" in kinds


def _named(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload else name


def returns_tensors(schema: OperatorSchema) -> bool:
    """Whether something that it returns is a tensor, or tensors."""
    return any(is_tensor_like(item.type) for item in schema.returns)


class Groups(msgspec.Struct, eq=False, dict=True):
    """All groups of a file, by signature and by entry.

    ``named`` has the entries by name, ``repeats`` those whose name stands before, with the first; ``unread`` are the names,
    without overload and suffix, of entries that cannot be read.
    """

    by_key: Mapping[SignatureKey, Group]
    by_entry: Mapping[NativeEntry, Group]
    named: Mapping[str, NativeEntry]
    repeats: Sequence[tuple[NativeEntry, NativeEntry]]
    unread: frozenset[str]

    @cached_property
    def all(self) -> tuple[Group, ...]:
        """Every group, in the order of the file."""
        return tuple(self.by_key.values())

    @cached_property
    def without_out(self) -> Mapping[tuple[str, str, str], Sequence[Group]]:
        """The groups with a functional operator and no out variant, by their signature without the name."""
        found: dict[tuple[str, str, str], list[Group]] = {}
        for group in self.all:
            if "functional" in group.variants and "out" not in group.variants:
                found.setdefault(group.key[1:], []).append(group)
        return found

    @cached_property
    def copies(self) -> Mapping[SignatureKey, Sequence[Group]]:
        """The groups of operators that copy, by the signature of the view."""
        found: dict[SignatureKey, list[Group]] = {}
        for key, group in self.by_key.items():
            if view_base(key[0].base) != key[0].base:
                found.setdefault(view_key(key), []).append(group)
        return found

    def copy_of(self, view: Group) -> NativeEntry | None:
        """The functional operator that copies a view."""
        for group in self.copies.get(view_key(view.key), ()):
            entry = group.variants.get("functional")
            if entry is not None and not is_view(entry):
                return entry
            made = next((item.base for item in group.generated if item.kind == "functional"), None)
            if made is not None:
                return made
        return None

    @cached_property
    def views(self) -> Sequence[NativeEntry]:
        """The entries that torchgen takes for views."""
        return [entry for entry in self.by_entry if is_view(entry)]

    @cached_property
    def by_base(self) -> Mapping[str, Sequence[NativeEntry]]:
        """The entries by name without overload."""
        found: dict[str, list[NativeEntry]] = {}
        for name, entry in self.named.items():
            found.setdefault(name.partition(".")[0], []).append(entry)
        return found

    def of_name(self, name: str) -> Sequence[NativeEntry]:
        """The overloads of a name."""
        return self.by_base.get(name, ())

    @cached_property
    def doubled(self) -> frozenset[Group]:
        """The groups with repeated names: either entry may be the one that is meant."""
        found = {self.by_entry[first] for _, first in self.repeats}
        keys = (signed(entry.schema)[1] for entry, _ in self.repeats if entry.schema is not None)
        return frozenset(found.union(self.by_key[key] for key in keys if key in self.by_key))

    def knows_all(self, base: str) -> bool:
        """Whether no entry that cannot be read may be an operator of this name, whatever its overload."""
        return not self.unread or not ("" in self.unread or base in self.unread)

    @property
    def complete(self) -> bool:
        """Whether the entries are complete: each can be parsed, and none is in the place of another."""
        return not self.unread and not self.repeats


_NAME = re.compile(r"\w+(?:\.\w+)?", re.ASCII)


@cached_on_argument
def groups_of(native: NativeFile) -> Groups:
    """The groups of the entries that can be read; a name that appears twice counts once."""
    by_key: dict[SignatureKey, Group] = {}
    by_entry: dict[NativeEntry, Group] = {}
    named: dict[str, NativeEntry] = {}
    repeats: list[tuple[NativeEntry, NativeEntry]] = []
    items = native.file.root.items if native.file.root is not None else ()
    unread = {""} if len(items) != len(native.entries) else set()  # items that are not mappings
    for entry in native.entries:
        schema = entry.schema
        if schema is None:
            unread.add(_unread_base(entry))
            continue
        name = full_name(schema)
        if name in named:
            repeats.append((entry, named[name]))
            continue
        named[name] = entry
        kind, key = signed(schema, may_write=entry.schema_text is None or "!" in entry.schema_text.text)
        group = by_key.get(key)
        if group is None:
            group = by_key[key] = Group(key)
        by_entry[entry] = group
        if kind in group.variants:
            group.repeated.append((entry, group.variants[kind]))
        else:
            group.variants[kind] = entry
    return Groups(by_key, by_entry, named, repeats, frozenset(unread))


def _unread_base(entry: NativeEntry) -> str:
    """The name, without overload and suffixes, of an entry whose schema cannot be read; empty where that is broken, too."""
    name = entry.name.rpartition("::")[2]
    whole = "(" in entry.text_of("func") and _NAME.fullmatch(name)
    return base_name(name.partition(".")[0]).base if whole else ""

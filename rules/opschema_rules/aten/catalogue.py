"""ATen's operators in a few words each: what the YAML of a backend is judged by, without reading schemas on every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.suggestions import near_names
from opschema_rules.aten.model import NativeFile, Reference
from opschema_rules.aten.signatures import base_name, full_name
from opschema_rules.aten.traits import EXPLICIT, IMPLICIT, autogen_of, dispatch_of, tags_of


class Known(msgspec.Struct, frozen=True, array_like=True):
    """An operator. ``symint`` tells that an argument holds a ``SymInt``, ``implicit`` that it is made of others
    (``CompositeImplicitAutograd``).
    """

    name: str
    symint: bool = False
    implicit: bool = False


class Catalogue(msgspec.Struct, array_like=True, dict=True):
    """All of them; ``keys`` are the dispatch keys that ATen itself has kernels for.

    ``complete`` tells that every entry of the file has a name, so that what is not here is nowhere. ``excerpt`` tells that its
    tables name kernels of a backend and none for ``CPU``: such a file, as torch-xpu-ops had one, holds what one backend has
    of ATen's.
    """

    operators: list[Known]
    keys: list[str]
    complete: bool
    excerpt: bool

    @cached_property
    def by_name(self) -> Mapping[str, Known]:
        """The operators by their names with overloads."""
        return {item.name: item for item in self.operators}

    @cached_property
    def overloads(self) -> Mapping[str, Sequence[str]]:
        """The names with overloads by those without."""
        found: dict[str, list[str]] = {}
        for item in self.operators:
            found.setdefault(item.name.partition(".")[0], []).append(item.name)
        return found

    def candidates(self, name: str) -> Sequence[str]:
        """What was probably meant by a name that is not here, the likeliest first; at most five."""
        name = name.removeprefix("aten::").partition("(")[0].strip()
        if name in self.by_name:
            return [name]
        base, _, overload = name.partition(".")
        if base.endswith("_out") and base[:-4] in self.overloads:
            outs = [other for other in self.overloads[base[:-4]] if "out" in other]
            return outs[:5]
        if len(same := [other for other in self.by_name if other.lower() == name.lower()]) == 1:
            return same
        if base in self.overloads:
            known = self.overloads[base]
            near = near_names(f"{base}.{overload}", known, 5, 0.6) if overload else []
            return [*near, *(other for other in known if other not in near)][:5]
        near = near_names(base[:100], self.overloads, 3, 0.75)
        full = [f"{other}.{overload}" if overload else other for other in near]
        kept = [other for other in full if other in self.by_name]
        return kept or [other for base in near for other in self.overloads[base]][:5]


def catalogue_of(native: NativeFile) -> Catalogue:
    """The catalogue of a native_functions.yaml, from the fields alone: no schema is read, so that all of them may be wrong."""
    found: dict[str, Known] = {}
    generated: list[Known] = []
    tables: set[str] = set()
    for entry in native.entries:
        keys = dispatch_of(entry) or frozenset()
        tables |= keys
        found.setdefault(entry.name, Known(entry.name, _has_symint(entry.text("func") or ""), IMPLICIT in keys))
        # torchgen passes over what a composite operator's `autogen` lists, unless that is tagged `core`.
        for name, _ in autogen_of(entry) if IMPLICIT not in keys or "core" in tags_of(entry) else ():
            tables.add(EXPLICIT)
            generated.append(Known(name, found[entry.name].symint))
    for item in generated:
        found.setdefault(item.name, item)
    complete = bool(native.entries) and found.pop("", None) is None
    return Catalogue(list(found.values()), sorted(tables), complete, _is_excerpt(native))


def _is_excerpt(native: NativeFile) -> bool:
    """By what the tables name: inner loops (``ufunc_inner_loop``) make kernels for ``CPU`` in an excerpt, too."""
    keys = {item.key for entry in native.having("dispatch") for item in entry.dispatch()}
    return "CPU" not in keys and any(not key.startswith("Composite") for key in keys)


def _has_symint(schema: str) -> bool:
    return "SymInt" in schema.rpartition(" -> ")[0]


def variants(native: NativeFile, names: Iterable[str]) -> Mapping[str, int]:
    """The number of the group of each operator that torchgen groups, of those whose base name one of ``names`` has."""
    bases = {_base(name) for name in names}
    entries = [entry for entry in native.entries if _base(entry.name) in bases]
    some = replace(native, entries=entries)
    found: dict[str, int] = {}
    for number, group in enumerate(some.groups.all):
        if group.formed:
            members = [full_name(item.schema) for item in group.entries if item.schema is not None]
            found.update(dict.fromkeys([*members, *(item.name for item in group.generated)], number))
    return found


def variants_across(reference: Reference | None, forward: Iterable[str], autograd: Iterable[str]) -> Mapping[str, int]:
    """The groups of operators of which a backend lists one for itself and one for its autograd."""
    bases = {_base(name) for name in forward}
    names = [name for name in autograd if _base(name) in bases]
    return variants(reference.native, names) if names and reference is not None else {}


def _base(name: str) -> str:
    return base_name(name.partition(".")[0]).base

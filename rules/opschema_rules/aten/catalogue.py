"""ATen's operators in a few words each, by which the YAML of a backend is checked without reading schemas on every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.suggestions import near_names


class Known(msgspec.Struct, frozen=True, array_like=True):
    """An operator. ``symint`` if an argument contains a ``SymInt``, ``implicit`` if it is composed of others
    (``CompositeImplicitAutograd``).
    """

    name: str
    symint: bool = False
    implicit: bool = False


class Catalogue(msgspec.Struct, array_like=True, dict=True):
    """All operators; ``keys`` are the dispatch keys for which ATen itself has kernels.

    ``complete`` says that every entry of the file has a name, so that what is not here is nowhere. ``excerpt`` says that its
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
        """Return the names that an unknown name may have meant, likeliest first, up to five."""
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

"""The catalogue of a native_functions.yaml, and the groups of the operators that a backend lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_rules.aten.catalogue import Catalogue, Known
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeFile, Reference
from opschema_rules.aten.signatures import base_name, full_name
from opschema_rules.aten.traits import EXPLICIT, IMPLICIT, autogen_of, dispatch_of, tags_of


@cached_on_argument
def catalogue_of(native: NativeFile) -> Catalogue:
    """Return the catalogue of a native_functions.yaml, from the fields alone: schemas are not parsed, so any of them may be
    wrong.
    """
    found: dict[str, Known] = {}
    generated: list[Known] = []
    tables: set[str] = set()
    for entry in native.entries:
        keys = dispatch_of(entry) or frozenset()
        tables |= keys
        found.setdefault(entry.name, Known(entry.name, _has_symint(entry.text_of("func")), IMPLICIT in keys))
        # torchgen passes over what a composite operator's `autogen` lists, unless that is tagged `core`.
        for name, _ in autogen_of(entry) if IMPLICIT not in keys or "core" in tags_of(entry) else ():
            tables.add(EXPLICIT)
            generated.append(Known(name, found[entry.name].symint))
    for item in generated:
        found.setdefault(item.name, item)
    complete = bool(native.entries) and found.pop("", None) is None
    return Catalogue(list(found.values()), sorted(tables), complete, _is_excerpt(native))


def _is_excerpt(native: NativeFile) -> bool:
    """Whether the tables show an excerpt: in one, inner loops (``ufunc_inner_loop``) make kernels for ``CPU``, too."""
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
    for number, group in enumerate(groups_of(some).all):
        if group.formed:
            members = [full_name(item.schema) for item in group.entries if item.schema is not None]
            found.update(dict.fromkeys([*members, *(item.name for item in group.generated)], number))
    return found


def variants_across(reference: Reference | None, forward: Iterable[str], autograd: Iterable[str]) -> Mapping[str, int]:
    """Return the groups of operators of which a backend lists one for itself and another for its autograd."""
    bases = {_base(name) for name in forward}
    names = [name for name in autograd if _base(name) in bases]
    return variants(reference.native, names) if names and reference is not None else {}


def _base(name: str) -> str:
    return base_name(name.partition(".")[0]).base

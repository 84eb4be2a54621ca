"""The operators that torchgen knows: those of the entries, and those that it generates for them."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_rules.aten.model import Function, NativeFile


def functions_of(native: NativeFile) -> Mapping[str, Function]:
    """Every operator by its name with the overload."""
    found = {entry.name: (entry, entry.schema) for entry in native.entries}
    return {name: Function(name, schema, entry) for name, (entry, schema) in found.items() if schema is not None}

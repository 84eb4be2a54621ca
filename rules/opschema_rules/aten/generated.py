"""The operators that torchgen knows: those of the entries, and those that it generates for them."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import Function, NativeEntry, NativeFile
from opschema_rules.aten.signatures import full_name
from opschema_rules.aten.traits import EXPLICIT, dispatch_of, is_structured

_META = frozenset({"Meta"})
_NON_FUNCTIONAL = frozenset({"Meta", "CompositeExplicitAutogradNonFunctional"})


@cached_on_argument
def functions_of(native: NativeFile) -> Mapping[str, Function]:
    """Every operator by its name with the overload, without namespace; of a name that appears twice the first."""
    found: dict[str, Function] = {}
    structured: dict[str, frozenset[str]] = {}
    delegates: list[tuple[NativeEntry, OperatorSchema, str]] = []
    for entry in native.entries:
        schema = entry.schema
        if schema is None or (name := full_name(schema)) in found:
            continue
        keys = dispatch_of(entry) or frozenset()
        if is_structured(entry):
            structured[name] = keys
            keys |= _META
        elif "structured_delegate" in entry.fields:
            delegates.append((entry, schema, name))
        found[name] = Function(name, schema, entry, keys)
    for entry, schema, name in delegates:
        outs = structured.get(entry.text_of("structured_delegate"))
        if outs is not None:
            keys = found[name].dispatch | (outs & native.torchgen.vocabulary.structured) | _NON_FUNCTIONAL
            found[name] = Function(name, schema, entry, keys)
    for group in groups_of(native).all:
        for item in group.generated:
            if item.name not in found and item.schema is not None:
                found[item.name] = Function(item.name, item.schema, item.base, frozenset({EXPLICIT}), generated=True)
    return found

"""Constants that expressions are: one number, string, truth value, tuple or list, or a name of another package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opschema_cli.evaluation.values import EnumMember, ExternalName, Items, Plain, Text, Unknown, Values
from opschema_cli.source.resolution import Folded, Unresolved

if TYPE_CHECKING:
    from opschema_cli.evaluation.evaluator import Evaluator


def folded(evaluator: Evaluator, values: Values) -> Folded | Unresolved:
    """The constant that values are, or why they are none."""
    if len(values) != 1:
        return Unresolved("it may be several values")
    value = values[0]
    if isinstance(value, Plain):
        return Folded(value.value)
    if isinstance(value, Text) and value.names is not None and len(value.names) == 1:
        return Folded(min(value.names))
    if isinstance(value, ExternalName):
        return Folded(symbol=value.name)
    if isinstance(value, EnumMember):
        return Unresolved(f"`{value.ref.name}.{value.name}` is a member of an enumeration")
    if isinstance(value, Items) and value.kind != "set" and not value.open:
        return _sequence(evaluator, value)
    return Unresolved(value.reason if isinstance(value, Unknown) else "it is not a constant")


def _sequence(evaluator: Evaluator, value: Items) -> Folded | Unresolved:
    parts = [folded(evaluator, evaluator.values(item)) for item in value.elements]
    known = [item.value for item in parts if isinstance(item, Folded) and not item.symbol]
    if len(known) != len(parts):
        return Unresolved("an element is not constant")
    return Folded(tuple(known) if value.kind == "tuple" else known)

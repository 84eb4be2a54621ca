"""Folds expressions to constants: a number, string, truth value, tuple or list, or a name of another package."""

from __future__ import annotations

from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_NESTING, MAX_PARTS
from opschema_cli.evaluation.values import EnumMember, ExternalName, Items, Unknown, Value, Values
from opschema_cli.source.resolution import Folded, Unresolved


def folded(evaluator: Evaluator, values: Values) -> Folded | Unresolved:
    """Return the constant of some values, or the reason why there is none."""
    return _Folder(evaluator).fold(values)


class _Folder:
    """Builds one constant from a limited number of parts."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.parts = 0

    def fold(self, values: Values, depth: int = MAX_NESTING) -> Folded | Unresolved:
        """Return the constant of some values, or the reason why there is none."""
        self.parts += 1
        if len(values) != 1 or depth <= 0 or self.parts > MAX_PARTS:
            return Unresolved("it may be several values" if len(values) > 1 else "it is too large")
        value = values[0]
        if isinstance(value, ExternalName):
            return Folded(symbol=value.name)
        if isinstance(value, Items) and value.kind != "set" and not value.open:
            return self._sequence(value, depth - 1)
        known = constant(value)
        return Folded(known[0]) if known is not None else Unresolved(_reason(value))

    def _sequence(self, value: Items, depth: int) -> Folded | Unresolved:
        found: list[object] = []
        for item in value.elements:
            part = self.fold(self.evaluator.values(item), depth)
            if isinstance(part, Unresolved) or part.symbol:
                return Unresolved("an element is not constant")
            found.append(part.value)
        return Folded(tuple(found) if value.kind == "tuple" else found)


def _reason(value: Value) -> str:
    if isinstance(value, EnumMember):
        return f"`{value.ref.name}.{value.name}` is a member of an enumeration"
    return value.reason if isinstance(value, Unknown) else "it is not a constant"

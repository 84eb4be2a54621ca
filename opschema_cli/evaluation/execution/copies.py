"""Copies of values, so that changes on one path of an execution are invisible to the others."""

from __future__ import annotations

from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    DtypeValue,
    Environment,
    Fixed,
    Object,
    Opaque,
    PartialCall,
    Record,
    TensorValue,
)
from opschema_cli.evaluation.values import ClassValue, ExternalName

_UNCHANGING = frozenset(
    {int, str, float, bool, type(None), TensorValue, DtypeValue, Opaque, Fixed, ClassValue, ExternalName}
)
"""Types of values that are never copied."""


class Copier:
    """Copies containers, objects and variables; each one once, so that references stay shared."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[object, object]] = {}

    def tuple(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """Return copies of the values."""
        return tuple(map(self.copy, values))

    def copy(self, value: object) -> object:
        """Return a copy of a value; an immutable value is returned unchanged."""
        if type(value) in _UNCHANGING:
            return value
        known = self._made.get(id(value))
        return known[1] if known is not None else self._copied(value)

    def _copied(self, value: object) -> object:
        match value:
            case list():
                made: list[object] = []
                self._made[id(value)] = value, made
                made.extend(map(self.copy, value))
                return made
            case dict():
                table: dict[object, object] = {}
                self._made[id(value)] = value, table
                table.update((key, self.copy(item)) for key, item in value.items())
                return table
            case Record():
                return self._kept(value, value.rebuilt(map(self.copy, value)))
            case tuple():
                return self._kept(value, tuple(map(self.copy, value)))
            case set():
                return self._kept(value, set(value))
            case BoundMethod():
                return self._kept(value, BoundMethod(self.copy(value.function), self.copy(value.this)))
            case PartialCall():
                words = {name: self.copy(item) for name, item in value.keywords.items()}
                places = self.tuple(value.positional)
                return self._kept(value, PartialCall(self.copy(value.function), places, words))
            case Object() | Closure() | Environment():
                return self._struct(value)
        return value

    def _kept(self, value: object, made: object) -> object:
        self._made[id(value)] = value, made
        return made

    def _struct(self, value: Object | Closure | Environment) -> object:
        made: Object | Closure | Environment
        if isinstance(value, Object):
            made = self._made.setdefault(id(value), (value, Object(value.cls, {}, value.complete, value.lasting)))[1]  # type: ignore[assignment]
            made.attributes.update((name, self.copy(item)) for name, item in value.attributes.items())  # type: ignore[union-attr]
            return made
        if isinstance(value, Environment):
            made = Environment(value.body, {}, value.names, None, value.inner, value.frame)
            self._made[id(value)] = value, made
            made.variables.update((name, self.copy(item)) for name, item in value.variables.items())
            made.parent = self.copy(value.parent)  # type: ignore[assignment]
            return made
        made = Closure(value.body, None, {}, {}, value.static)
        self._made[id(value)] = value, made
        made.around = self.copy(value.around)  # type: ignore[assignment]
        made.defaults.update((name, self.copy(item)) for name, item in value.defaults.items())
        made.attributes.update((name, self.copy(item)) for name, item in value.attributes.items())
        return made

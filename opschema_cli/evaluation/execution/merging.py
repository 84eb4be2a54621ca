"""Merges the outcomes of several paths."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.plain import Identical, is_scalar
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    Object,
    Opaque,
    Record,
    TensorValue,
)
from opschema_cli.evaluation.values import ExternalName

_DIFFERENT = "it depends on conditions that are not known"


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the common outcome of all paths; paths that raise do not count if others return."""
    values = [item.value for item in outcomes if isinstance(item, Returned)]
    if len(outcomes) == 1:
        return outcomes[0]
    if not values:
        return _raised([item for item in outcomes if isinstance(item, Raised)])
    found = values[0]
    for value in values[1:]:
        found = Merger().one(found, value)
    return Unresolved(found.reason, found.place) if isinstance(found, Opaque) else Returned(found)


def _raised(outcomes: Sequence[Raised]) -> Outcome:
    first = outcomes[0]
    names = {item.exception for item in outcomes}
    if len(names) > 1:
        return Raised("Exception", None, first.place)
    same = all(item.message == first.message for item in outcomes)
    return first if same else Raised(first.exception, None, first.place)


class Merger:
    """Merges two values; parts that differ are opaque."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, int], object] = {}

    def one(self, left: object, right: object) -> object:
        """Return the value that may be either of two."""
        if left is right:
            return left
        key = (id(left), id(right))
        if key in self._pairs:
            return self._pairs[key]
        self._pairs[key] = left
        self._pairs[key] = found = self._merged(left, right)
        return found

    def _merged(self, left: object, right: object) -> object:
        if isinstance(left, Opaque) or type(left) is not type(right):
            return left if isinstance(left, Opaque) else Opaque(_DIFFERENT)
        match left, right:
            case tuple(), tuple() if len(left) == len(right):
                return self._tuples(left, right)
            case list(), list() if len(left) == len(right):
                return [self.one(*pair) for pair in zip(left, right, strict=True)]
            case dict(), dict() if list(left) == list(right):
                return {name: self.one(item, right[name]) for name, item in left.items()}
            case Object(), Object() if left.cls == right.cls:
                return self._objects(left, right)
            case TensorValue(), TensorValue() if len(left.shape) == len(right.shape):
                return self._tensors(left, right)
            case Closure(), Closure() if left.body is right.body:
                return left if left.around is None else Opaque(_DIFFERENT)
            case BoundMethod(), BoundMethod():
                function, this = self.one(left.function, right.function), self.one(left.this, right.this)
                return Opaque(_DIFFERENT) if isinstance(function, Opaque) else BoundMethod(function, this)
        return self._leaves(left, right)

    def _tuples(self, left: tuple[object, ...], right: tuple[object, ...]) -> object:
        parts = tuple(self.one(*pair) for pair in zip(left, right, strict=True))
        if isinstance(left, Record) and isinstance(right, Record):
            return left.rebuilt(parts) if left.cls == right.cls else Opaque(_DIFFERENT)
        return parts

    def _leaves(self, left: object, right: object) -> object:
        known = is_scalar(left) or isinstance(left, Identical | ExternalName | set | frozenset)
        return left if known and left == right else Opaque(_DIFFERENT)

    def _objects(self, left: Object, right: Object) -> Object:
        names = dict.fromkeys([*left.attributes, *right.attributes])
        made = Object(left.cls, {}, left.complete and right.complete, left.lasting or right.lasting)
        self._pairs[id(left), id(right)] = made
        lost = Opaque(_DIFFERENT)
        for name in names:
            made.attributes[name] = self.one(left.attributes.get(name, lost), right.attributes.get(name, lost))
        return made

    def _tensors(self, left: TensorValue, right: TensorValue) -> TensorValue:
        shape = tuple(self.one(*pair) for pair in zip(left.shape, right.shape, strict=True))
        dtype = left.dtype if left.dtype == right.dtype else None
        return TensorValue(shape, dtype, left.device if left.device == right.device else None)

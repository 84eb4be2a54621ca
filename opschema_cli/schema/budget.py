"""Budget of an evaluation: steps, sizes and time, charged where work can repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from time import perf_counter
from types import GeneratorType
from typing import Any

import msgspec

from opschema_cli.schema.values import BudgetExceeded, Value


class Budget(msgspec.Struct, frozen=True):
    """Limits of one evaluation: steps, items of one container, bits of one integer, seconds."""

    steps: int = 100_000
    items: int = 100_000
    bits: int = 4096
    seconds: float = 0.05


_CLOCK_STEPS = 512
"""Steps between two looks at the clock; the first look starts it, so that no short rule depends on time."""

MAX_SET = 1024
"""Largest set: items can be chosen to share one hash, and then building it takes quadratic time."""

NUMBERS = frozenset({bool, int, float})
SCALARS = NUMBERS | {type(None), type, range}
SEQUENCES = frozenset({tuple, list, str})
SETS = frozenset({set, frozenset})
CONTAINERS = frozenset({tuple, list, set, frozenset, dict})
HEAVY = CONTAINERS | {str}
SIZED = HEAVY | {range}
ITERABLE = SIZED | {GeneratorType}


class Run:
    """One evaluation: its names, the variables of its comprehensions, and its remaining budget."""

    __slots__ = ("_checkpoint", "_deadline", "budget", "env", "slots", "steps")

    def __init__(self, env: Mapping[str, Value], budget: Budget, slots: int) -> None:
        self.env = env
        self.budget = budget
        self.slots: list[Any] = [None] * slots
        self.steps = budget.steps
        self._checkpoint = budget.steps - _CLOCK_STEPS if budget.steps > _CLOCK_STEPS else 0
        self._deadline = 0.0

    def charge(self, steps: int) -> None:
        """Pay ``steps``.

        Raises:
            BudgetExceeded: the steps or the time are used up.
        """
        self.steps -= steps
        if self.steps < self._checkpoint:
            self._look()

    def _look(self) -> None:
        if self.steps < 0:
            raise BudgetExceeded("steps")
        now = perf_counter()
        if not self._deadline:
            self._deadline = now + self.budget.seconds
        elif now > self._deadline:
            raise BudgetExceeded("time")
        self._checkpoint = max(self.steps - _CLOCK_STEPS, 0)

    def limit(self, size: int, most: int) -> None:
        """Refuse a ``size`` above ``most``."""
        if size > most:
            raise BudgetExceeded("size")

    def grow(self, length: int) -> None:
        """Pay for a new container of ``length`` items, before it is built."""
        if length > 64:
            self.limit(length, self.budget.items)
            self.charge(length >> 3)

    def weigh(self, value: Any, factor: int = 1) -> None:
        """Pay for reading all of ``value``, however deep; shared parts count each time they are met."""
        kind = value.__class__
        if kind is str:
            self.charge((len(value) >> 4) * factor)
        elif kind in CONTAINERS:
            self.charge((len(value) + 1) * factor)
            for part in value if kind is not dict else chain.from_iterable(value.items()):
                if part.__class__ in HEAVY:
                    self.weigh(part, factor)

    def each(self, values: Any) -> Iterable[Any]:
        """``values`` if it can be iterated; the loop pays per round."""
        if values.__class__ not in ITERABLE:
            raise TypeError(f"{kind_of(values)} cannot be iterated")
        return values

    def stream(self, values: Any) -> Iterable[Any]:
        """Yield ``values`` one by one, and charge each to the budget. Generators charge for themselves."""
        return self.each(values) if values.__class__ is GeneratorType else self._paid(self.each(values))

    def _paid(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.charge(1)
            yield value

    def items(self, values: Any) -> list[Any]:
        """All items of ``values`` as a new list, paid for."""
        items = list(islice(self.each(values), self.budget.items + 1))
        self.limit(len(items), self.budget.items)
        self.charge(len(items))
        return items

    def make_set(self, items: list[Any]) -> set[Any]:
        """The set of ``items``, paid for."""
        self.limit(len(items), MAX_SET)
        self.weigh(items)
        return set(items)

    def plus(self, left: Any, right: Any) -> Any:
        """``left + right`` of numbers, or of two tuples, lists or texts."""
        lefts, rights = left.__class__, right.__class__
        if lefts in NUMBERS and rights in NUMBERS:
            return left + right
        if lefts is not rights or lefts not in SEQUENCES:
            raise mismatch("+", left, right)
        self.grow(len(left) + len(right))
        return left + right

    def times(self, left: Any, right: Any) -> Any:
        """``left * right`` of numbers, or of an integer and a tuple, list or text."""
        lefts, rights = left.__class__, right.__class__
        if lefts in NUMBERS and rights in NUMBERS:
            if lefts is not float and rights is not float:
                self.limit(left.bit_length() + right.bit_length(), self.budget.bits)
            return left * right
        if rights in SEQUENCES:
            left, right, lefts, rights = right, left, rights, lefts
        if lefts not in SEQUENCES or rights not in NUMBERS or rights is float:
            raise mismatch("*", left, right)
        self.grow(len(left) * max(right, 0))
        return left * right


def kind_of(value: object) -> str:
    """A value's type, for messages."""
    return "None" if value is None else repr(type(value).__name__)


def mismatch(sign: str, left: object, right: object) -> TypeError:
    """The error of an operator that does not take these two values."""
    return TypeError(f"`{sign}` cannot combine {kind_of(left)} and {kind_of(right)}")

"""The variables of an orchestration while it is followed, and how paths are joined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from opschema_cli.source.text import Span
from opschema_rules.pypto.cpp_values import UNKNOWN, Pointer, Tensors, Value, merged, objects_of
from opschema_rules.pypto.facts import Payload, Slot

MAX_WAYS = 64
"""Maximum number of alternatives of one payload to follow."""

MAX_SLOTS = 1_000
"""Maximum number of arguments of one payload to follow; the runtime accepts far fewer."""

ANY = -2
"""Stands for any of the orchestration's own tensors."""

SEVERAL = "more than one `#if` fills it"
"""The reason why the contents of an object are not known if several conditions of directives decide about them."""

EMPTY: frozenset[Payload] = frozenset({Payload()})
LOST: frozenset[Payload] = frozenset({Payload((), "its arguments are not followed")})


@dataclass
class State:
    """The values of variables, by number, and the alternative contents of objects, for one path.

    ``used`` are the orchestration's own tensors that anything may have used, ``written`` those that it may have written
    without having read them; with ``ANY`` among them that may be all. ``turned`` are the objects whose
    alternatives come from loops with an unknown number of iterations, ``compiled`` those whose alternatives come from branches of
    an ``#if``.
    """

    values: dict[int, Value] = field(default_factory=dict)
    held: dict[int, frozenset[Payload]] = field(default_factory=dict)
    used: frozenset[int] = field(default=frozenset(), compare=False)
    written: frozenset[int] = field(default=frozenset(), compare=False)
    turned: frozenset[int] = field(default=frozenset(), compare=False)
    compiled: frozenset[int] = field(default=frozenset(), compare=False)

    def copy(self) -> State:
        """Return a copy for another path from here."""
        return State(dict(self.values), dict(self.held), self.used, self.written, self.turned, self.compiled)

    def become(self, other: State) -> None:
        """Continue as another state."""
        self.values, self.held = other.values, other.held
        self.used, self.written = other.used, other.written
        self.turned, self.compiled = other.turned, other.compiled

    def within(self, outer: State) -> State:
        """Return the state without variables that another state does not have."""
        return State(
            {number: value for number, value in self.values.items() if number in outer.values},
            {number: payloads for number, payloads in self.held.items() if number in outer.held},
            self.used,
            self.written,
            self.turned,
            self.compiled,
        )

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop variables whose block ends."""
        for number in numbers:
            self.values.pop(number, None)
            self.held.pop(number, None)

    def turn_from(self, before: State) -> None:
        """Record that a loop with an unknown number of iterations lies between another state and this one."""
        found = {number for number, payloads in before.held.items() if self.payloads(number) != payloads}
        self.turned |= found

    def touch(self, argument: int, *, writes: bool) -> None:
        """Record that a tensor is used."""
        if argument not in self.used:
            self.used |= {argument}
        if writes and argument not in self.written:
            self.written |= {argument}

    def touch_all(self, payload: Payload, *, told: bool) -> None:
        """Record that a task uses the contents of a payload; if ``told`` by scalars, it may write what it could read."""
        if payload.unresolved:
            self.touch(ANY, writes=True)
        for slot in payload.tensors:
            if slot.argument >= 0:
                self.touch(slot.argument, writes=slot.kind in ("out", "no_dep") or (told and slot.kind == "inout"))

    def untouched(self, arguments: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return those of some tensors that nothing has used, and those that nothing may have written."""
        return _without(arguments, self.used), _without(arguments, self.written)

    def payloads(self, number: int) -> frozenset[Payload]:
        """Return the payloads that an object may hold."""
        return self.held.get(number, LOST)

    def add(self, number: int, slots: Iterable[Slot]) -> None:
        """Add slots to the contents of an object, on every path."""
        more = tuple(slots)
        self.held[number] = frozenset(_added(payload, more) for payload in self.payloads(number))

    def lose(self, number: int, reason: str, at: Span) -> None:
        """Record that the contents of an object are no longer known."""
        self.held[number] = frozenset({Payload((), reason, at)})

    def leak(self, number: int, reason: str, at: Span) -> None:
        """Record that an object may be filled from elsewhere from now on."""
        self.lose(number, reason, at)
        self.values[number] = UNKNOWN

    def widen(self, before: State, arguments: Iterable[int], at: Span) -> None:
        """Record that everything that a loop keeps changing may have any value."""
        anything = Tensors(frozenset({*arguments, -1}))
        for number, value in self.values.items():
            if value != before.values.get(number) and not objects_of(value):
                self.values[number] = anything if isinstance(value, Tensors | Pointer) else UNKNOWN
        for number in grown(before, self):
            self.lose(number, "a loop adds to it", at)


def _without(arguments: Iterable[int], others: frozenset[int]) -> tuple[int, ...]:
    return () if ANY in others else tuple(sorted(frozenset(arguments) - others))


def _added(payload: Payload, slots: tuple[Slot, ...]) -> Payload:
    if payload.unresolved:
        return payload
    found = list(payload.slots)
    for slot in slots:
        if slot.kind == "scalar" and found and found[-1].kind == "scalar" and found[-1].count < 0:
            continue
        found.append(slot)
    if len(found) > MAX_SLOTS:
        return Payload((), f"more than {MAX_SLOTS} arguments are added", found[-1].span)
    return Payload(tuple(found))


def joined(states: Iterable[State | None], within: State | None = None) -> State | None:
    """Return the state after several paths; None if none is reached. A variable that some paths do not have keeps its value from
    the others; variables missing in ``within`` are dropped.
    """
    live = [state for state in states if state is not None]
    if not live:
        return None
    first, *others = live
    found = first.copy() if within is None else first.within(within)
    for state in others:
        _join(found, state, state if within is None else within)
    return found


def _join(found: State, other: State, within: State) -> None:
    values, held = found.values, found.held
    for number, value in other.values.items():
        own = values.get(number)
        if own is not value and number in within.values:
            values[number] = value if own is None else merged((own, value))
    for number, payloads in other.held.items():
        known = held.get(number)
        if known is not payloads and number in within.held:
            held[number] = payloads if known is None else _limited(known | payloads)
    found.used |= other.used
    found.written |= other.written
    found.turned |= other.turned
    found.compiled |= other.compiled


def _limited(payloads: frozenset[Payload]) -> frozenset[Payload]:
    if len(payloads) <= MAX_WAYS:
        return payloads
    return frozenset({Payload((), f"there are more than {MAX_WAYS} ways to fill it")})


def grown(before: State, after: State) -> list[int]:
    """Return the objects that hold more after the body of a loop than before."""
    return [number for number in before.held if not after.payloads(number) <= before.payloads(number)]


def with_open_scalars(before: State, after: State) -> None:
    """Record that a loop adds any number of scalars, if it adds nothing else."""
    for number in grown(before, after):
        after.held[number] = frozenset(_opened(payload, before.payloads(number)) for payload in after.payloads(number))


def _opened(payload: Payload, before: Iterable[Payload]) -> Payload:
    base = next((item for item in before if _only_scalars_more(item, payload)), None)
    if base is None or len(payload.slots) <= len(base.slots):
        return payload
    return _added(base, (Slot("scalar", payload.slots[len(base.slots)].span, count=-1),))


def _only_scalars_more(base: Payload, payload: Payload) -> bool:
    more = payload.slots[len(base.slots) :]
    same = not base.unresolved and payload.slots[: len(base.slots)] == base.slots
    return same and all(slot.kind == "scalar" for slot in more)


class Scope(msgspec.Struct):
    """The names of a block, each with its variable's number, and the enclosing block. ``own`` are the variables declared in the
    block, which end with it; the others are references.
    """

    around: Scope | None = None
    names: dict[str, int] = msgspec.field(default_factory=dict)
    own: set[int] = msgspec.field(default_factory=set)

    def find(self, name: str) -> int | None:
        """Return the number of the variable with that name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return None

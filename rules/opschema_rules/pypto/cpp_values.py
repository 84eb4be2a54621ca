"""What the variables of an orchestration stand for while it is followed, and how ways through it are joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import KernelId, Payload, Slot

MAX_WAYS = 64
"""Most alternatives of one payload that are followed."""


@dataclass(frozen=True)
class Tensors:
    """A tensor: one of these arguments of the orchestration, -1 for any other."""

    arguments: frozenset[int]

    @property
    def argument(self) -> int:
        """The one argument that it is; -1 when it is another tensor, or one of several."""
        return min(self.arguments) if len(self.arguments) == 1 else -1


@dataclass(frozen=True)
class Pointer:
    """The memory of one of these arguments."""

    arguments: frozenset[int]


@dataclass(frozen=True)
class Created:
    """A description by which the runtime allocates a tensor (``TensorCreateInfo``)."""


@dataclass(frozen=True)
class Outside:
    """The arguments of the orchestration itself."""


@dataclass(frozen=True)
class Number:
    """A whole number that is known."""

    value: int


@dataclass(frozen=True)
class Object:
    """An object of some class, which may be a payload: the number under which a state keeps what it holds."""

    number: int


@dataclass(frozen=True)
class Mixed:
    """The kernels of a task (``MixedKernels``)."""

    kernels: tuple[KernelId, ...]


@dataclass(frozen=True)
class Unknown:
    """Anything else."""


Value: TypeAlias = "Tensors | Pointer | Created | Outside | Number | Object | Mixed | Unknown"

OTHER = Tensors(frozenset({-1}))
UNKNOWN = Unknown()
EMPTY: frozenset[Payload] = frozenset({Payload()})


def merged(values: Iterable[Value]) -> Value:
    """What a variable is that may be one or the other."""
    found = list(dict.fromkeys(values))
    if len(found) == 1:
        return found[0]
    for kind in (Tensors, Pointer):
        same = [item for item in found if isinstance(item, kind)]
        if len(same) == len(found) > 0:
            return kind(frozenset().union(*(item.arguments for item in same)))
    return UNKNOWN


@dataclass
class State:
    """The values of variables, by their numbers, and the alternatives of what objects hold; one for each way through."""

    values: dict[int, Value] = field(default_factory=dict)
    held: dict[int, frozenset[Payload]] = field(default_factory=dict)

    def copy(self) -> State:
        """A state that goes another way from here."""
        return State(dict(self.values), dict(self.held))

    def payloads(self, number: int) -> frozenset[Payload]:
        """What an object may hold."""
        return self.held.get(number, EMPTY)

    def add(self, number: int, slots: Iterable[Slot]) -> None:
        """Add slots to what an object holds, on every way."""
        more = tuple(slots)
        self.held[number] = frozenset(_added(payload, more) for payload in self.payloads(number))

    def lose(self, number: int, reason: str, at: Span) -> None:
        """Say that it is not known any more what an object holds."""
        self.held[number] = frozenset({Payload((), reason, at)})


def _added(payload: Payload, slots: tuple[Slot, ...]) -> Payload:
    if payload.unresolved:
        return payload
    found = list(payload.slots)
    for slot in slots:
        if slot.kind == "scalar" and found and found[-1].kind == "scalar" and found[-1].count < 0:
            continue
        found.append(slot)
    return Payload(tuple(found))


def joined(states: Iterable[State | None]) -> State | None:
    """The state behind several ways, of which some may not come here; None when none does."""
    live = [state for state in states if state is not None]
    if len(live) < 2:
        return live[0] if live else None
    found = State()
    for number in {number for state in live for number in state.values}:
        found.values[number] = merged(state.values.get(number, UNKNOWN) for state in live)
    for number in {number for state in live for number in state.held}:
        found.held[number] = _limited(frozenset().union(*(state.payloads(number) for state in live)))
    return found


def _limited(payloads: frozenset[Payload]) -> frozenset[Payload]:
    if len(payloads) <= MAX_WAYS:
        return payloads
    return frozenset({Payload((), f"there are more than {MAX_WAYS} ways to fill it")})


def grown(before: State, after: State) -> list[int]:
    """The objects that hold more behind the body of a loop than before it."""
    return [number for number in before.held | after.held if not after.payloads(number) <= before.payloads(number)]


def with_open_scalars(before: State, after: State, numbers: Iterable[int]) -> None:
    """Where a loop adds nothing but scalars, say that it adds any number of them."""
    for number in numbers:
        found: set[Payload] = set()
        for payload in after.payloads(number):
            base = next((item for item in before.payloads(number) if _only_scalars_more(item, payload)), None)
            if base is not None and len(payload.slots) > len(base.slots):
                first = payload.slots[len(base.slots)]
                payload = _added(base, (Slot("scalar", first.span, count=-1),))
            found.add(payload)
        after.held[number] = frozenset(found)


def _only_scalars_more(base: Payload, payload: Payload) -> bool:
    more = payload.slots[len(base.slots) :]
    return payload.slots[: len(base.slots)] == base.slots and all(slot.kind == "scalar" for slot in more)


@dataclass
class Scope:
    """The names of a block, each with the number of its variable, and the block around it."""

    around: Scope | None = None
    names: dict[str, int] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)

    def find(self, name: str) -> int | None:
        """The number of the variable of that name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return None

"""The order of a kernel's accesses to memory: which reads surely come before all writes of the same memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from opschema_rules.pypto.kernel_facts import Effect
from opschema_rules.pypto.kernel_pieces import Pieces

_MAY_NOT_RUN = re.compile(r"\b(?:if|else|for|while|switch)\b|\?|&&|\|\|")
_JUMPS = re.compile(r"\b(?:goto|case|default)\b")


class Spot(msgspec.Struct, frozen=True):
    """The place of an access: the number of the call in which it happens, and that of the piece of the function's body."""

    call: int
    piece: int


class Written(msgspec.Struct, frozen=True):
    """All writes of some memory, in one call: the piece of the first, and the blocks that all of them are in."""

    call: int
    piece: int
    blocks: frozenset[int]


def in_order(
    effects: Mapping[Effect, Iterable[Spot]], bodies: Sequence[Pieces], is_conditional: Callable[[int], bool]
) -> Iterator[Effect]:
    """The same effects, with those reads marked that come before any write. ``bodies`` are those of the calls."""
    writes: dict[int, list[Effect]] = {}
    for effect in effects:
        if effect.kind == "written":
            writes.setdefault(effect.index, []).append(effect)
    known: dict[tuple[int, str], Written | None] = {}
    for effect, spots in effects.items():
        key = effect.index, effect.core
        if effect.kind == "read" and effect.index in writes and key not in known:
            places = [at for one in writes[effect.index] if _meet(effect, one) for at in effects[one]]
            known[key] = _written(places, bodies)
        written = known.get(key) if effect.kind == "read" else None
        first = written is not None and any(_is_before(bodies[spot.call], spot, written) for spot in spots)
        first = first and not is_conditional(effect.span.start)
        yield msgspec.structs.replace(effect, first=True) if first else effect


def _meet(one: Effect, other: Effect) -> bool:
    """Whether one core may do both."""
    return not one.core or not other.core or one.core == other.core


def _written(places: Sequence[Spot], bodies: Sequence[Pieces]) -> Written | None:
    """Where all writes are; None where several calls write."""
    calls = {at.call for at in places}
    if len(calls) != 1:
        return None
    (call,) = calls
    pieces = {at.piece for at in places}
    around = [bodies[call].blocks_of(piece) for piece in pieces]
    return Written(call, min(pieces), frozenset.intersection(*around))


def _is_before(pieces: Pieces, read: Spot, written: Written) -> bool:
    """Whether a read surely happens before the writes: in the same call, unconditionally in a block that all of them are in."""
    if read.call != written.call or read.piece > written.piece:
        return False
    piece = pieces.piece(read.piece)
    return piece.block in written.blocks and not _MAY_NOT_RUN.search(piece.text) and not pieces.has(_JUMPS)

"""The order of a kernel's memory accesses: the reads that are known to precede all writes of the same memory.

Only what is written in a few plain forms is sure: a ``TLOAD`` whose tile is stored again after some arithmetic, or ``p[i] += x``,
in a function that is called without a condition. Everything else may be the first access or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from opschema_rules.pypto.kernel_facts import Effect
from opschema_rules.pypto.kernel_pieces import Pieces
from opschema_rules.pypto.kernel_text import KernelText, matching

_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"\s*(?!(?:if|for|while|switch|return|else|do)\b)[A-Za-z_]\w*\s*(?:<[^;()]*>\s*)?\(")
_INSTRUCTION = re.compile(r"\s*(T[A-Z]+)\s*\(([^()]*)\)\s*")
_COMPUTES = re.compile(
    r"T(?:(?:ROWEXPAND|COLEXPAND)?(?:ADD|SUB|MUL|DIV|MAX|MIN)S?|CVT|MOV|EXP|LOG|SQRT|RSQRT|ABS|NEG|RELU)"
)
_WAITS = re.compile(r"\s*(?:set_flag|wait_flag|pipe_barrier|pipe_sync|TSYNC)\s*\([\w\s,:]*\)\s*")
_UPDATE = re.compile(
    r"\s*(?P<item>[A-Za-z_]\w*\[[^\[\]=?,]*\])\s*(?:[-+*/|&^]=|=(?!=)(?=.*?(?P=item)))[^=?,&|]*", re.DOTALL
)
_JUMPS = re.compile(r"\b(?:goto|case|default|return|break|continue|throw|try|exit|abort)\b")
_LAMBDA = re.compile(r"(?:[^\w\])\s]|\breturn)\s*\[(?!\[)")
_UNKNOWN_MACRO = re.compile(r"\b(?!T[A-Z]+\b)[A-Z][A-Z0-9_]+\s*\(|(?<=[;{}])\s*[A-Z][A-Z0-9_]+\s*;")

_MOST = 200
"""Maximum number of pieces between a load and a store to examine."""


class Spot(NamedTuple):
    """The place of an access: the number of its call, and the number of the piece in the function's body."""

    call: int
    piece: int


class Body(msgspec.Struct, frozen=True):
    """The body of a called function, and the place of the call; None for the entry."""

    pieces: Pieces
    caller: Spot | None


class Written(msgspec.Struct, frozen=True):
    """All writes of some memory, in one call and on one core: the first one, and the blocks that contain all of them."""

    first: Spot
    core: str
    blocks: frozenset[int]


def in_order(effects: Mapping[Effect, Iterable[Spot]], bodies: Sequence[Body], file: KernelText) -> Iterator[Effect]:
    """Yield the effects, with the reads marked that precede all writes. ``bodies`` are those of the calls."""
    writes: dict[int, list[tuple[Spot, str]]] = {}
    reads: dict[int, list[tuple[Spot, str]]] = {}
    for effect, spots in effects.items():
        if effect.kind in ("read", "written"):
            found = reads if effect.kind == "read" else writes
            found.setdefault(effect.index, []).extend((spot, effect.core) for spot in spots)
    order = _Order(bodies, file)
    first = {index for index, found in reads.items() if index in writes and order.is_first(min(found), writes[index])}
    for effect in effects:
        marked = effect.kind == "read" and effect.index in first
        yield msgspec.structs.replace(effect, first=True) if marked else effect


class _Order(msgspec.Struct):
    bodies: Sequence[Body]
    file: KernelText

    def is_first(self, access: tuple[Spot, str], writes: Sequence[tuple[Spot, str]]) -> bool:
        """Whether a read is certain, and precedes all of these writes."""
        (read, core), written = access, self._written(writes)
        if written is None or written.first.call != read.call or not self._is_reached(read, written):
            return False
        pieces = self.bodies[read.call].pieces
        piece = pieces.piece(read.piece)
        if piece.block not in written.blocks or written.core != core:
            return False
        if read.piece == written.first.piece:
            return _UPDATE.fullmatch(piece.text) is not None
        return read.piece < written.first.piece and _is_stored(pieces, read.piece, written.first.piece)

    def _written(self, writes: Sequence[tuple[Spot, str]]) -> Written | None:
        """Return the place of all writes; None if several calls or cores write."""
        if len({spot.call for spot, _ in writes}) != 1 or len({core for _, core in writes}) != 1:
            return None
        first = min(spot for spot, _ in writes)
        pieces = self.bodies[first.call].pieces
        around = [pieces.blocks_of(piece) for piece in {spot.piece for spot, _ in writes}]
        return Written(first, writes[0][1], frozenset.intersection(*around))

    def _is_reached(self, read: Spot, written: Written) -> bool:
        """Whether the code up to the first write always runs as written, in each function that leads there."""
        if not self._runs(read, until=written.first.piece):
            return False
        at = self.bodies[read.call].caller
        while at is not None:
            text = self.bodies[at.call].pieces.piece(at.piece).text
            call = _CALL.match(text)
            if call is None or text[matching(text, call.end() - 1) + 1 :].strip() or not self._runs(at, until=at.piece):
                return False
            at = self.bodies[at.call].caller
        return True

    def _runs(self, at: Spot, until: int) -> bool:
        pieces = self.bodies[at.call].pieces
        jump, macro = pieces.first(_JUMPS), min(pieces.first(_UNKNOWN_MACRO), self._macro(pieces))
        piece = pieces.piece(at.piece)
        plain = pieces.is_plain(at.piece) and not self.file.is_conditional(piece.code_at)
        return plain and jump > at.piece and macro > until and pieces.first(_LAMBDA) == pieces.count

    def _macro(self, pieces: Pieces) -> int:
        """Return the first piece that names a macro of the file that may be code."""
        return min(
            (pieces.naming(name)[0] for name in self.file.code_macros if pieces.naming(name)), default=pieces.count
        )


def _is_stored(pieces: Pieces, read: int, write: int) -> bool:
    """Whether the first store writes a load's tile, or a value computed from it."""
    load, block = _INSTRUCTION.fullmatch(pieces.piece(read).text), pieces.piece(read).block
    if load is None or load[1] != "TLOAD" or write - read > _MOST:
        return False
    held = {load[2].partition(",")[0].strip()}
    for index in range(read + 1, write + 1):
        piece = pieces.piece(index)
        found = _INSTRUCTION.fullmatch(piece.text)
        to, *sources = [item.strip() for item in found[2].split(",")] if found is not None else [""]
        if found is not None and piece.block == block and not held.isdisjoint(sources):
            if index == write:
                return found[1] == "TSTORE"
            held.add(to)
            computes = _COMPUTES.fullmatch(found[1]) is not None
        else:
            loads = found is not None and found[1] == "TLOAD" and to not in held
            computes = loads or not piece.text.strip() or _WAITS.fullmatch(piece.text) is not None
        if not computes:
            return False
    return False

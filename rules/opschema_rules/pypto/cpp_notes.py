"""Records made while an orchestration is followed: submits, and uses of its own tensors outside of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from opschema_cli.source.text import Span
from opschema_rules.pypto.cpp_state import State
from opschema_rules.pypto.facts import Payload, Submit, Use

Noted = TypeVar("Noted", Submit, Use)


class Mark(msgspec.Struct, frozen=True):
    """The numbers of recorded submits and uses, and whether something is lost."""

    submits: int
    uses: int
    order: int
    unresolved: str


class Kept(msgspec.Struct, frozen=True):
    """Records made since a mark."""

    submits: list[Submit]
    uses: list[Use]
    order: int
    unresolved: str


class Notes:
    """The records of one entry. ``unresolved`` says why more may be submitted, or done to tensors, than is known."""

    def __init__(self) -> None:
        self.submits: list[Submit] = []
        self.uses: list[Use] = []
        self.unresolved = ""
        self._order = 0

    def submit(self, found: Submit, state: State, *, turned: bool) -> None:
        """Record a submit. If its payload is ``turned``, nothing is certain of earlier records on its paths."""
        self._order += 1
        own = {slot.argument for payload in found.payloads for slot in payload.tensors} - {-1}
        first, fresh = state.untouched(() if turned else own)
        self.submits.append(msgspec.structs.replace(found, order=self._order, first=first, fresh=fresh))
        scalars = any(slot.kind == "scalar" for payload in found.payloads for slot in payload.slots)
        for payload in found.payloads:
            state.touch_all(payload, told=found.looped and scalars)

    def use(self, found: Use, state: State) -> None:
        """Record a use of a tensor outside of payloads."""
        self._order += 1
        first, fresh = state.untouched({found.argument})
        self.uses.append(msgspec.structs.replace(found, order=self._order, first=bool(first), fresh=bool(fresh)))
        state.touch(found.argument, writes=found.how != "read")

    def lose_payloads(self, reason: str, at: Span) -> None:
        """Record that no payload is known, nor whether any is submitted."""
        lost = (Payload((), reason, at),)
        self.submits = [msgspec.structs.replace(item, payloads=lost, conditional=True) for item in self.submits]

    # -- the turns of loops --------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return a mark after the current records."""
        return Mark(len(self.submits), len(self.uses), self._order, self.unresolved)

    def undo(self, mark: Mark) -> None:
        """Drop the records made since a mark."""
        del self.submits[mark.submits :], self.uses[mark.uses :]
        self._order = mark.order

    def cut(self, mark: Mark) -> Kept:
        """Remove and return the records made since a mark, including the fact that something was lost."""
        kept = Kept(self.submits[mark.submits :], self.uses[mark.uses :], self._order, self.unresolved)
        self.undo(mark)
        self.unresolved = mark.unresolved
        return kept

    def paste(self, kept: Kept) -> None:
        """Add removed records again."""
        self.submits += kept.submits
        self.uses += kept.uses
        self._order, self.unresolved = kept.order, kept.unresolved

    def join_turns(self, mark: Mark) -> None:
        """Merge equal records of different loop iterations."""
        self.submits[mark.submits :] = _once(self.submits[mark.submits :])
        self.uses[mark.uses :] = _once(self.uses[mark.uses :])

    def carry_round(self, mark: Mark, end: State) -> None:
        """Record that another iteration may precede what one iteration of a loop did."""
        for at, submit in enumerate(self.submits[mark.submits :], mark.submits):
            first, fresh = end.untouched(submit.first)[0], end.untouched(submit.fresh)[1]
            self.submits[at] = msgspec.structs.replace(submit, first=first, fresh=fresh)
        for at, use in enumerate(self.uses[mark.uses :], mark.uses):
            unused, unwritten = end.untouched({use.argument})
            both = {"first": use.first and bool(unused), "fresh": use.fresh and bool(unwritten)}
            self.uses[at] = msgspec.structs.replace(use, **both)


def _once(found: Sequence[Noted]) -> list[Noted]:
    """Return records without duplicates that differ only in what preceded them."""
    seen: dict[Noted, Noted] = {}
    for item in found:
        seen.setdefault(_plain(item), item)
    return list(seen.values())


def _plain(item: Noted) -> Noted:
    if isinstance(item, Submit):
        return msgspec.structs.replace(item, order=0, conditional=False, first=(), fresh=())
    return msgspec.structs.replace(item, order=0, conditional=False, first=False, fresh=False)

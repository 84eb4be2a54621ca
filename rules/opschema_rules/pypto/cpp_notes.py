"""Notes taken while an orchestration is followed: submits, and uses of its own tensors outside of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from opschema_cli.source.text import Span
from opschema_rules.pypto.cpp_state import State
from opschema_rules.pypto.facts import Payload, Submit, Use

Noted = TypeVar("Noted", Submit, Use)


class Mark(msgspec.Struct, frozen=True):
    """The numbers of noted submits and uses, and whether something is lost."""

    submits: int
    uses: int
    order: int
    unresolved: str


class Kept(msgspec.Struct, frozen=True):
    """Notes taken since a mark."""

    submits: list[Submit]
    uses: list[Use]
    order: int
    unresolved: str


class Notes:
    """The notes of one entry. ``unresolved`` says why more may be submitted, or done to tensors, than is known."""

    def __init__(self) -> None:
        self.submits: list[Submit] = []
        self.uses: list[Use] = []
        self.unresolved = ""
        self._order = 0

    def submit(self, found: Submit, state: State, *, turned: bool) -> None:
        """Note a submit; nothing is certain of what came before it on the ways of one whose payload is ``turned``."""
        self._order += 1
        own = {slot.argument for payload in found.payloads for slot in payload.tensors} - {-1}
        first, fresh = state.untouched(() if turned else own)
        self.submits.append(msgspec.structs.replace(found, order=self._order, first=first, fresh=fresh))
        scalars = any(slot.kind == "scalar" for payload in found.payloads for slot in payload.slots)
        for payload in found.payloads:
            state.touch_all(payload, told=found.looped and scalars)

    def use(self, found: Use, state: State) -> None:
        """Note what happens to a tensor outside of payloads."""
        self._order += 1
        first, fresh = state.untouched({found.argument})
        self.uses.append(msgspec.structs.replace(found, order=self._order, first=bool(first), fresh=bool(fresh)))
        state.touch(found.argument, writes=found.how != "read")

    def lose_payloads(self, reason: str, at: Span) -> None:
        """Say that no payload is known, nor whether any is submitted."""
        lost = (Payload((), reason, at),)
        self.submits = [msgspec.structs.replace(item, payloads=lost, conditional=True) for item in self.submits]

    # -- the turns of loops --------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """A mark of the notes taken so far."""
        return Mark(len(self.submits), len(self.uses), self._order, self.unresolved)

    def undo(self, mark: Mark) -> None:
        """Forget what was noted since."""
        del self.submits[mark.submits :], self.uses[mark.uses :]
        self._order = mark.order

    def cut(self, mark: Mark) -> Kept:
        """Take back what was noted since, and that something was lost."""
        kept = Kept(self.submits[mark.submits :], self.uses[mark.uses :], self._order, self.unresolved)
        self.undo(mark)
        self.unresolved = mark.unresolved
        return kept

    def paste(self, kept: Kept) -> None:
        """Note again what was taken back."""
        self.submits += kept.submits
        self.uses += kept.uses
        self._order, self.unresolved = kept.order, kept.unresolved

    def join_turns(self, mark: Mark) -> None:
        """Keep once what the turns of a loop did alike."""
        self.submits[mark.submits :] = _once(self.submits[mark.submits :])
        self.uses[mark.uses :] = _once(self.uses[mark.uses :])

    def carry_round(self, mark: Mark, end: State) -> None:
        """Say of what a turn of a loop did that another turn may have come before it."""
        for at, submit in enumerate(self.submits[mark.submits :], mark.submits):
            first, fresh = end.untouched(submit.first)[0], end.untouched(submit.fresh)[1]
            self.submits[at] = msgspec.structs.replace(submit, first=first, fresh=fresh)
        for at, use in enumerate(self.uses[mark.uses :], mark.uses):
            unused, unwritten = end.untouched({use.argument})
            both = {"first": use.first and bool(unused), "fresh": use.fresh and bool(unwritten)}
            self.uses[at] = msgspec.structs.replace(use, **both)


def _once(found: Sequence[Noted]) -> list[Noted]:
    """Notes without those that say the same again, whatever was before them."""
    seen: dict[Noted, Noted] = {}
    for item in found:
        seen.setdefault(_plain(item), item)
    return list(seen.values())


def _plain(item: Noted) -> Noted:
    if isinstance(item, Submit):
        return msgspec.structs.replace(item, order=0, conditional=False, first=(), fresh=())
    return msgspec.structs.replace(item, order=0, conditional=False, first=False, fresh=False)

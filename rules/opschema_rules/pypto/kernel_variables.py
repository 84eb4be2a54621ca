"""The variables of a kernel's statement, and where its expressions lead."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.source.text import Span
from opschema_rules.pypto.kernel_pieces import mentions
from opschema_rules.pypto.kernel_tokens import Tokens
from opschema_rules.pypto.kernel_walk import MAX_DEPTH, NOTHING, Frame, KernelWalk, Refs

_BEFORE_NAME = re.compile(r"[\w>*&]\s*[\s*&>]\Z|,\s*\**\Z")
_BEHIND_NAME = re.compile(r"\s*(?:[=(,\[]|\Z)")
WIDE = re.compile(r"\b(?:u?int64_t|uintptr_t|intptr_t|size_t|auto|long|union)\b")
"""Types that may hold an address."""


class Result(msgspec.Struct, frozen=True):
    """Where an expression leads. ``place`` is the memory that it refers to (``x[3]``), which is read if its value is."""

    refs: Refs = NOTHING
    place: Refs = NOTHING


class Variables:
    """One piece, with the variables that it sees. ``called`` is where the results of its followed calls lead, by bracket."""

    def __init__(self, walk: KernelWalk, frame: Frame, block: int, tokens: Tokens) -> None:
        self.walk = walk
        self.frame = frame
        self.block = block
        self.tokens = tokens
        self.called: dict[int, Refs] = {}
        self._depth = 0

    def sinks(self) -> bool:
        """Go one level deeper. Return whether that is too deep to follow."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.walk.lose_all("its statements nest too deeply")
        return self._depth > MAX_DEPTH

    def rises(self) -> None:
        """Go back one level."""
        self._depth -= 1

    # -- variables -----------------------------------------------------------------------------------------------------

    def bind(self, variable: tuple[int, str], refs: Refs) -> None:
        """Record that a variable may also lead to some arguments."""
        known, refs = self.frame.values.get(variable, NOTHING), self.walk.followed(refs)
        if refs and not refs <= known:
            self.frame.values[variable] = known | refs
            self.frame.push(variable[1], known | refs)

    def abandon(self, variable: tuple[int, str] | None, reason: str, span: Span) -> None:
        """Record that a variable may lead to memory other than the known one."""
        refs = self.frame.values.get(variable, NOTHING) if variable is not None else NOTHING
        self.walk.move(refs)
        self.walk.lose(pointers(refs), reason, span)

    def declares(self, name: str) -> bool:
        """Whether the function declares a variable of a name."""
        return name in self.frame.parameters or self.block_of(name) >= 0

    def block_of(self, name: str) -> int:
        """Return the block that declares a variable, as seen from here; -1 if there is none."""
        parts = self.frame.pieces
        seen = set[int]()
        block = self.block
        while block >= 0:
            seen.add(block)
            block = parts.around[block]
        pieces = [parts.piece(at) for at in parts.naming(name)]
        return max((piece.block for piece in pieces if piece.block in seen and _declares(piece.text, name)), default=-1)

    def narrow(self, refs: Refs, words: list[str]) -> None:
        """Record an argument that a variable of a type holds unchanged."""
        text = " ".join(words)
        for level, index in refs:
            if level == "slot" and "*" not in words and not WIDE.search(text):
                self.walk.use(index, "number", self.tokens.span(0, 1))


def pointers(refs: Refs) -> Refs:
    """Return the memory and the tensors among some places."""
    return frozenset(ref for ref in refs if ref[0] != "slot")


def _declares(text: str, name: str) -> bool:
    """Whether a piece declares a variable."""
    if text.strip() == name:
        return True
    return any(
        _BEFORE_NAME.search(text, max(0, at - 40), at) is not None
        and _BEHIND_NAME.match(text, at + len(name)) is not None
        for at in mentions(text, name)
    )

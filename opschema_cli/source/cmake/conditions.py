"""Conditions around the commands of a CMake file, and the source files that are always compiled together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

Choice: TypeAlias = tuple[str, bool]
"""A condition as written, and whether it holds."""

Origin: TypeAlias = frozenset[Choice] | None
"""The conditions under which a word is part of a list; None if it may have been removed again."""

ALWAYS: frozenset[Choice] = frozenset()

MAX_CHOICES = 64
"""Maximum number of conditions to keep for one place."""

_BLOCKS = frozenset({"while", "block"})
_ENDS = frozenset({"endif", *(f"end{name}" for name in _BLOCKS)})


class _Block(msgspec.Struct):
    """A block: the state around it, its conditions so far, and whether one of them is known to hold."""

    origin: frozenset[Choice]
    skips: bool
    choices: list[Choice]
    settled: bool = False


class Conditions:
    """The blocks around the current command of the file ``name``; ``skips`` is set if it is known not to run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.origin: frozenset[Choice] = ALWAYS
        self.skips = False
        self._around: list[_Block] = []
        self._count = 0

    def read(self, name: str, words: Sequence[str], holds: bool | None = None, scope: str = "") -> bool:
        """Read a command, and return whether it opens or closes a block.

        ``holds`` is the value of its condition, if that is known; ``scope`` distinguishes conditions on local variables.
        """
        if name in ("if", *_BLOCKS):
            block = _Block(self.origin, self.skips, [])
            self._around.append(block)
            self._choose(block, (self.new(name), True) if name in _BLOCKS else _choice(words, scope), holds)
        elif name in ("elseif", "else") and self._around:
            block = self._around[-1]
            self.origin = self._limited(
                block.origin | {(text, not value) for text, value in block.choices[:MAX_CHOICES]}
            )
            self.skips = block.skips or block.settled
            if name == "elseif" and not block.settled:
                self._choose(block, _choice(words, scope), holds)
        elif name in _ENDS and self._around:
            block = self._around.pop()
            self.origin, self.skips = block.origin, block.skips
        return name in _BLOCKS or name in _ENDS or name in ("if", "elseif", "else")

    def _choose(self, block: _Block, choice: Choice, holds: bool | None) -> None:
        if holds is None:
            block.choices.append(choice)
            self.origin = self._limited(self.origin | {choice})
        block.settled = holds is True
        self.skips = block.skips or holds is False

    def _limited(self, origin: frozenset[Choice]) -> frozenset[Choice]:
        return origin if len(origin) < MAX_CHOICES else frozenset({(self.new("deep"), True)})

    def replaced(self) -> tuple[Origin, Origin]:
        """The origins of the words that a command inserts, and of the words that it replaces."""
        if not self.origin:
            return ALWAYS, None
        name = self.new("set")
        return frozenset({(name, True)}), frozenset({(name, False)})

    def new(self, name: str) -> str:
        """Return a unique text for a condition."""
        self._count += 1
        return f"{name} {self._count} of {self.name}"

    def depth(self) -> int:
        """The number of open blocks."""
        return len(self._around)

    def close(self, depth: int) -> None:
        """Close the blocks that a body has left open."""
        while len(self._around) > depth:
            self.read("endif", ())


def _choice(words: Sequence[str], scope: str) -> Choice:
    negated = len(words) == 2 and words[0] == "NOT"
    return " ".join(words[negated:]) + scope, not negated


def joined(one: Origin, other: Origin) -> Origin:
    """Return the origin of a word with the origin ``one`` that is used under the conditions of ``other``."""
    return None if one is None or other is None else one | other


def are_together(one: Origin, other: Origin) -> bool:
    """Whether a build with one of two words has the other: the conditions of one are among those of the other."""
    return one is not None and other is not None and (one <= other or other <= one)

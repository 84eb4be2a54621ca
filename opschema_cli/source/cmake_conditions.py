"""Conditions around the commands of a CMake file, and the source files that are surely compiled together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Choice: TypeAlias = tuple[str, bool]
"""A condition as it is written, and whether it holds."""

Origin: TypeAlias = "frozenset[Choice] | None"
"""The conditions under which a word is part of a list; None when it may have been removed again."""

ALWAYS: frozenset[Choice] = frozenset()

_BLOCKS = frozenset({"foreach", "while", "function", "macro", "block"})
_ENDS = frozenset({"endif", *(f"end{name}" for name in _BLOCKS)})


class Conditions:
    """The blocks around the command that is read, of the file ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.origin: frozenset[Choice] = ALWAYS
        self._around: list[tuple[frozenset[Choice], list[Choice]]] = []
        self._count = 0

    def read(self, name: str, words: Sequence[str]) -> bool:
        """Read a command, and return whether it opens or closes a block."""
        if name == "if" or name in _BLOCKS:
            choice = _choice(words) if name == "if" else (self._new(name), True)
            self._around.append((self.origin, [choice]))
            self.origin |= {choice}
        elif name in ("elseif", "else") and self._around:
            outer, choices = self._around[-1]
            self.origin = outer | {(text, not holds) for text, holds in choices}
            if name == "elseif":
                choices.append(_choice(words))
                self.origin |= {choices[-1]}
        elif name in _ENDS and self._around:
            self.origin = self._around.pop()[0]
        return name in _BLOCKS or name in _ENDS or name in ("if", "elseif", "else")

    def replaced(self) -> tuple[Origin, Origin]:
        """The origins of what a command puts in the place of other words, and of these."""
        if not self.origin:
            return ALWAYS, None
        name = self._new("set")
        return frozenset({(name, True)}), frozenset({(name, False)})

    def _new(self, name: str) -> str:
        self._count += 1
        return f"{name} {self._count} of {self.name}"


def _choice(words: Sequence[str]) -> Choice:
    negated = len(words) == 2 and words[0] == "NOT"
    return " ".join(words[negated:]), not negated


def joined(one: Origin, other: Origin) -> Origin:
    """The origin of a word of a list with the one ``one`` that is used under the conditions of ``other``."""
    return None if one is None or other is None else one | other


def are_together(one: Origin, other: Origin) -> bool:
    """Whether a build that has one of two words has the other: the conditions of one are among those of the other."""
    return one is not None and other is not None and (one <= other or other <= one)

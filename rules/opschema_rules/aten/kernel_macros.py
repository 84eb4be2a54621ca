"""The methods of a class that macros define: their names, if the macros are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from opschema_cli.source.cpp_functions import calls
from opschema_cli.source.expansion import ExpansionError, expand
from opschema_cli.source.preprocessor import Macro, unambiguous

MAX_USES = 2_000
"""So many calls of macros are expanded; if there are more, every method may be made."""

_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w*")


class MadeByMacros(msgspec.Struct):
    """Members of the class ``owner`` that the macros of a tree define.

    ``makers`` are macros that mention the class, and those that use them. ``names`` are the methods that are made, or
    perhaps; ``any`` says that it may be every method. ``uses`` counts the calls that may make some.
    """

    owner: str
    macros: Mapping[str, Macro]
    makers: frozenset[str]
    names: set[str] = msgspec.field(default_factory=set)
    any: bool = False
    uses: int = 0

    @classmethod
    def of(cls, owner: str, macros: Sequence[Macro]) -> MadeByMacros:
        """Nothing yet; ``macros`` are those of all files that mention the class."""
        makers = _makers(owner, macros)
        renames = any(macro.parameters is None and owner in _WORD.findall(macro.body) for macro in macros)
        return cls(owner, unambiguous(macros), frozenset(makers), any=renames)

    def may_be_used(self, data: bytes) -> bool:
        """Whether a file mentions one of the macros."""
        return any(name.encode() in data for name in self.makers)

    def add(self, text: str) -> None:
        """Add the methods that macros make in a text."""
        for match, end in calls(_CALL.finditer(text), text):
            name = match[1]
            if name in self.makers or name in self.macros or name.isupper():
                self._use(name, text[match.start() : end])

    def _use(self, name: str, call: str) -> None:
        given = set(_WORD.findall(call[len(name) :]))
        handed = given & self.makers or re.search(rf"\b{self.owner}\b(?!\s*::)", call)
        if name not in self.makers and not handed:
            return
        self.uses += 1
        self.any |= self.uses > MAX_USES
        if self.any:
            return
        try:
            made = re.findall(rf"\b{self.owner}\s*::\s*(\w+)", expand(call, self.macros))
        except ExpansionError:
            made = []
        others = given - self.makers - {self.owner}
        self.names.update(made or others)
        self.any |= not made and not others


def _makers(owner: str, macros: Sequence[Macro]) -> set[str]:
    words = {macro.name: set(_WORD.findall(macro.body)) for macro in macros if macro.parameters is not None}
    found: set[str] = set()
    wanted = {owner}
    while wanted:
        wanted = {macro for macro, used in words.items() if used & wanted and macro not in found}
        found |= wanted
    return found

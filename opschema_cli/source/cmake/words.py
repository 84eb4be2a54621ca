"""Words of CMake commands after substitution of variables. Paths in the tree begin with ``//``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import msgspec

from opschema_cli.source.cmake.conditions import ALWAYS, Conditions, Origin, joined
from opschema_cli.source.cmake.scopes import UNKNOWN, Argument, Frame, Values

NAME = re.compile(r"[\w.+/-]+")
_VARIABLE = re.compile(r"\$\{([\w.+/-]+)\}")
_UNKNOWN_PART = re.compile(r"\0|\$(?:[{<]|\w+\{)")

_TOP = frozenset({"CMAKE_SOURCE_DIR", "CMAKE_HOME_DIRECTORY"})
_FOLDERS = {
    "CMAKE_CURRENT_SOURCE_DIR": "folder",
    "CMAKE_CURRENT_LIST_DIR": "file",
    "CMAKE_CURRENT_FUNCTION_LIST_DIR": "function",
}

MAX_WORD = 1_000
"""Maximum length of a known word, in characters."""

MAX_NESTED = 5
"""Maximum nesting of variables in names of variables."""


class Budget(msgspec.Struct):
    """The remaining number of commands to run, and of words to substitute for variables, in one tree."""

    commands: int
    words: int

    def pays(self, words: int) -> bool:
        """Subtract some words. Return False if none are left."""
        self.words -= words
        return self.words > 0


class Words:
    """The values of words where a command runs; ``top`` is the folder of the build's first file."""

    def __init__(self, conditions: Conditions, budget: Budget, top: str) -> None:
        self.conditions = conditions
        self.budget = budget
        self.top = top

    def values(self, words: Iterable[str], frame: Frame) -> list[tuple[str, Origin]]:
        """Return words with variables substituted."""
        return [item for argument in self.arguments(words, frame) for item in argument]

    def arguments(self, words: Iterable[str], frame: Frame) -> list[Argument]:
        """Return the words of each argument; empty for an empty variable."""
        found: list[Argument] = []
        here = self.conditions.origin
        for word in (part for item in words for part in _parts(item)):
            name = self.variable(word, frame)
            if name in ("ARGN", "ARGV"):
                given = frame.rest if name == "ARGN" else frame.arguments
            elif name is not None and not self._is_folder(name):
                known = frame.replaced.get(name, frame.scope.find(name))
                given = [list(known.items()) if known is not None else [(UNKNOWN, ALWAYS)]]
            else:
                given = [[(self.one(word, frame), ALWAYS)]]
            if self.budget.pays(sum(map(len, given))):
                found += [[(text, joined(origin, here)) for text, origin in item] for item in given]
        return found

    def variable(self, word: str, frame: Frame) -> str | None:
        """Return the variable that a word consists of."""
        if not word.startswith("${") or not word.endswith("}"):
            return None
        name = word[2:-1]
        if "$" in name:
            name = self.one(name, frame)
        return name if NAME.fullmatch(name) else None

    def one(self, word: str, frame: Frame) -> str:
        """Return a word with its variables substituted; empty if the value of one is not known."""
        for _ in range(MAX_NESTED):
            if "${" not in word or len(word) > MAX_WORD:
                break
            word = _VARIABLE.sub(lambda match: self._value(match[1], frame) or "\0", word)
        return "" if len(word) > MAX_WORD or _UNKNOWN_PART.search(word) else word

    def _is_folder(self, name: str) -> bool:
        return name in _TOP or name in _FOLDERS or name == "PROJECT_SOURCE_DIR"

    def _value(self, name: str, frame: Frame) -> str:
        known = frame.replaced.get(name, frame.scope.find(name))
        if known is not None:
            return next(iter(known)) if len(known) == 1 else ""
        folder = self.top if name in _TOP or name == "PROJECT_SOURCE_DIR" else None
        folder = getattr(frame, _FOLDERS[name]) if name in _FOLDERS else folder
        return f"//{folder}" if folder is not None else ""


def first(values: Iterable[tuple[str, Origin]]) -> Values:
    """Return words, each with its first origin."""
    found: Values = {}
    for word, origin in values:
        found.setdefault(word, origin)
    return found


def _parts(word: str) -> list[str]:
    """Return the items of a list that is written as one word."""
    return [part for part in word.split(";") if part] if "$<" not in word else [word]


def in_tree(word: str, folder: str) -> str:
    """Return the path in the tree that a word in a command of a folder refers to."""
    path = posixpath.normpath(word.lstrip("/") if word.startswith("//") else posixpath.join(folder, word))
    return "" if path == "." else path

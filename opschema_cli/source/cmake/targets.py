"""Targets that the commands of CMake make, with their source files and macros."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from opschema_cli.source.cmake.conditions import Origin, joined
from opschema_cli.source.cmake.scopes import Frame
from opschema_cli.source.cmake.words import Words, in_tree

_MACRO = re.compile(r"(?:-D)?([A-Za-z_]\w*)=(.*)")
_VALUE = re.compile(r'\\?"?([A-Za-z_]\w*)\\?"?')
_OBJECTS = re.compile(r"\$<TARGET_OBJECTS:(.+)>")


class Target(msgspec.Struct, frozen=True):
    """A library: its source files, and its macros with their values. ``extension`` is true for a torch extension, whose name is
    ``TORCH_EXTENSION_NAME``.
    """

    name: str
    sources: tuple[tuple[str, Origin], ...] = ()
    macros: tuple[tuple[str, str], ...] = ()
    extension: bool = False


class Targets:
    """The targets of a build."""

    def __init__(self, words: Words, is_source: Callable[[str], bool]) -> None:
        self.words = words
        self.is_source = is_source
        self.sources: dict[str, list[tuple[str, Origin]]] = {}
        self.parts: dict[str, list[tuple[str, Origin]]] = {}
        self.macros: dict[str, list[tuple[str, str]]] = {}
        self.folders: dict[str, str] = {}
        self.common: dict[str, list[tuple[str, str]]] = {}
        self.extensions: set[str] = set()

    def add(self, words: Sequence[str], frame: Frame, *, extension: bool) -> None:
        """Add the sources and macros in a command to its target."""
        name = self.words.one(words[0], frame)
        here = self.words.conditions.origin
        values = self.words.values(words[1:], frame)
        listed = [(f"//{in_tree(word, frame.folder)}", origin) for word, origin in values if self.is_source(word)]
        self.sources.setdefault(name, []).extend(listed)
        self.parts.setdefault(name, []).extend(
            (self.words.one(item[1], frame), here) for item in map(_OBJECTS.fullmatch, words) if item
        )
        self.macros.setdefault(name, []).extend(self.defined(words[1:], frame, bare=False))
        self.folders.setdefault(name, frame.folder)
        if extension:
            self.extensions.add(name)

    def defined(self, words: Iterable[str], frame: Frame, *, bare: bool) -> list[tuple[str, str]]:
        """Return the macros in words, each with its value; ``bare`` ones may lack the ``-D``."""
        found: list[tuple[str, str]] = []
        for word in (part for item in words for part in self._flags(item, frame)):
            macro = _MACRO.fullmatch(word)
            if macro is not None and (bare or word.startswith("-D")):
                value = _VALUE.fullmatch(self.words.one(macro[2], frame))
                found.append((macro[1], value[1] if value is not None else ""))
        return found

    def _flags(self, word: str, frame: Frame) -> list[str]:
        listed = self.words.variable(word, frame) is not None
        return [text for text, _ in self.words.values([word], frame)] if listed else re.split(r"[;\s]+", word)

    def targets(self) -> tuple[Target, ...]:
        """The targets of all files that were run."""
        return tuple(
            Target(name, tuple(self._sources_of(name)), (*self._common_of(name), *macros), name in self.extensions)
            for name, macros in self.macros.items()
        )

    def _sources_of(self, name: str) -> list[tuple[str, Origin]]:
        """Return the sources of a target, including those of its object libraries."""
        objects = [
            (path, joined(inner, origin))
            for part, origin in self.parts.get(name, ())
            for path, inner in self.sources.get(part, ())
        ]
        return [*self.sources.get(name, ()), *objects]

    def _common_of(self, name: str) -> list[tuple[str, str]]:
        folder = self.folders.get(name, self.words.top)
        return [item for around, items in self.common.items() if _is_in(folder, around) for item in items]


def _is_in(folder: str, around: str) -> bool:
    return not around or folder == around or folder.startswith(f"{around}/")

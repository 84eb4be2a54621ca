"""Targets of CMake files: source files and macros, as far as they are written out.

Both sides of a condition are read, and what is removed from a list stays: the :class:`Origin` of a source file says under which
conditions it is surely part of its target. A name or value with an unknown variable is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import msgspec

from opschema_cli.source.cmake_conditions import ALWAYS, Conditions, Origin, joined

_COMMAND = re.compile(r"\b(\w+)[ \t]*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
_COMMENT = re.compile(r"(?m)#.*")
_WORD = re.compile(r'"([^"\n]*)"|([^\s"]+)')
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_MACRO = re.compile(r"(?:-D)?([A-Za-z_]\w*)=(.*)")
_VALUE = re.compile(r'\\?"?([A-Za-z_]\w*)\\?"?')

_FOLDERS = frozenset(
    {
        *("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR", "CMAKE_SOURCE_DIR", "CMAKE_HOME_DIRECTORY"),
        "PROJECT_SOURCE_DIR",
    }
)
_MAKES_TARGET = re.compile(r"add_library|(?:pybind11|nanobind)_add_module|python_add_library|target_sources")
_MAKES_EXTENSION = re.compile(r"define_(?:gpu_|cpu_)?extension_target|torch_extension")
_DEFINES = frozenset({"target_compile_definitions", "target_compile_options", "set_target_properties"})
_DEFINES_ALL = frozenset({"add_compile_definitions", "add_definitions", "add_compile_options"})

MAX_WORDS = 200_000
"""Most words of lists that are put in the place of variables, in one file."""

MAX_WORD = 1_000
"""Longest word that is known, in characters."""

Variables = Mapping[str, Mapping[str, Origin]]
"""The values of each variable."""


class Target(msgspec.Struct, frozen=True):
    """A library: globs of its source files, and its macros with their values. ``extension`` is true for an extension of torch,
    whose name is ``TORCH_EXTENSION_NAME``.
    """

    name: str
    sources: tuple[tuple[str, Origin], ...] = ()
    macros: tuple[tuple[str, str], ...] = ()
    extension: bool = False


class CMakeFile(msgspec.Struct, frozen=True):
    """The targets of a CMake file, and the variables that files in folders below it see."""

    targets: tuple[Target, ...]
    variables: Variables


class _Reader:
    def __init__(self, variables: Variables, name: str) -> None:
        self.variables = {name: dict(values) for name, values in variables.items()}
        self.sources: dict[str, list[tuple[str, Origin]]] = {}
        self.macros: dict[str, list[tuple[str, str]]] = {}
        self.extensions: set[str] = set()
        self.common: list[tuple[str, str]] = []
        self.budget = MAX_WORDS
        self.conditions = Conditions(name)

    def command(self, name: str, words: Sequence[str]) -> None:
        if self.conditions.read(name, words) or not words:
            return
        if name == "set":
            given = list(takewhile(lambda word: word not in ("CACHE", "PARENT_SCOPE"), words[1:]))
            self._set(words[0], self._values(given), resets=f"${{{words[0]}}}" not in given)
        elif name == "list" and words[0] in ("APPEND", "PREPEND") and len(words) > 1:
            self._extend(words[1], self._values(words[2:]))
        elif name in ("list", "string", "unset"):
            self._doubt(words)
        elif name == "file" and words[0] in ("GLOB", "GLOB_RECURSE") and len(words) > 1:
            found = [(word, origin) for word, origin in self._values(words[2:]) if "*" in word]
            deep = words[0] == "GLOB_RECURSE"
            self._extend(words[1], [(_deep(word) if deep else word, origin) for word, origin in found])
        elif name == "project":
            self._extend("PROJECT_NAME", [(self._one(words[0]), ALWAYS)])
        elif _MAKES_EXTENSION.fullmatch(name) or _MAKES_TARGET.fullmatch(name):
            self._target(words, extension=_MAKES_EXTENSION.fullmatch(name) is not None)
        elif name in _DEFINES:
            self._macros(self._one(words[0])).extend(self._defined(words[1:], bare="options" not in name))
        elif name in _DEFINES_ALL:
            self.common += self._defined(words, bare=name == "add_compile_definitions")

    def _extend(self, name: str, values: Iterable[tuple[str, Origin]]) -> None:
        known = self.variables.setdefault(name, {})
        for word, origin in values:
            known.setdefault(word, origin)

    def _set(self, name: str, values: Iterable[tuple[str, Origin]], *, resets: bool) -> None:
        """Set a variable, whose values before it has no more where the command runs."""
        before = self.variables.get(name)
        if not before or not resets:
            self._extend(name, values)
            return
        here, elsewhere = self.conditions.replaced()
        new = {word: joined(origin, here) for word, origin in values}
        self.variables[name] = {**{word: joined(origin, elsewhere) for word, origin in before.items()}, **new}

    def _doubt(self, words: Sequence[str]) -> None:
        """Note that words may have been removed from the lists that a command names."""
        for name in set(words) & self.variables.keys():
            self.variables[name] = dict.fromkeys(self.variables[name])

    def _macros(self, target: str) -> list[tuple[str, str]]:
        return self.macros.setdefault(target, [])

    def _target(self, words: Sequence[str], *, extension: bool) -> None:
        name = self._one(words[0])
        self.sources.setdefault(name, []).extend(item for item in self._values(words[1:]) if "." in item[0])
        self._macros(name).extend(self._defined(words[1:], bare=False))
        if extension:
            self.extensions.add(name)

    # Words

    def _values(self, words: Iterable[str]) -> list[tuple[str, Origin]]:
        """Words with the values of variables in their place; without those that hold unknown ones."""
        found: list[tuple[str, Origin]] = []
        here = self.conditions.origin
        for word in words:
            variable = _VARIABLE.fullmatch(word)
            if variable is not None and variable[1] not in _FOLDERS:
                listed = self.variables.get(variable[1], {})
                self.budget -= len(listed)
                if self.budget > 0:
                    found += [(text, joined(origin, here)) for text, origin in listed.items()]
            elif text := self._one(word):
                found.append((text, here))
        return found

    def _one(self, word: str) -> str:
        """A word with its variables replaced; empty when the value of one is not known."""
        parts = _VARIABLE.split(word, maxsplit=MAX_WORD)  # text and names in turn
        parts[1::2] = map(self._value, parts[1::2])
        text = "".join(parts)
        return "" if "$" in text or "" in parts[1::2] or len(text) > MAX_WORD else text

    def _value(self, name: str) -> str:
        found = self.variables.get(name, {})
        return "." if name in _FOLDERS else next(iter(found)) if len(found) == 1 else ""

    def _defined(self, words: Iterable[str], *, bare: bool) -> list[tuple[str, str]]:
        """The macros in words, each with its value; ``bare`` ones may lack the ``-D``."""
        found: list[tuple[str, str]] = []
        for word in (part for item in words for part in re.split(r"[;\s]+", item)):
            macro = _MACRO.fullmatch(word)
            if macro is not None and (bare or word.startswith("-D")):
                value = _VALUE.fullmatch(self._one(macro[2]))
                found.append((macro[1], value[1] if value is not None else ""))
        return found

    def targets(self) -> tuple[Target, ...]:
        return tuple(
            Target(name, tuple(self.sources.get(name, ())), (*self.common, *macros), name in self.extensions)
            for name, macros in self.macros.items()
        )


def read_cmake(text: str, variables: Variables, name: str = "") -> CMakeFile:
    """Read a CMake file of that name that sees some variables."""
    reader = _Reader(variables, name)
    for name, body in _COMMAND.findall(_COMMENT.sub("", text)):
        reader.command(name.lower(), [quoted or plain for quoted, plain in _WORD.findall(body)])
    return CMakeFile(reader.targets(), reader.variables)


def _deep(pattern: str) -> str:
    """A glob that also matches in the folders below."""
    folder, _, name = pattern.rpartition("/")
    return "/".join(filter(None, (folder, "**", name)))

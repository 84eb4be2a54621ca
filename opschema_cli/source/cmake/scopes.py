"""Variables and arguments where a command of CMake runs: in a folder, a function or a macro."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from opschema_cli.source.cmake.conditions import ALWAYS, Choice, Origin
from opschema_cli.source.cmake.syntax import Command

Values: TypeAlias = dict[str, Origin]
"""Words that a variable may hold; an empty one stands for unknown words."""

UNKNOWN = ""

Argument: TypeAlias = list[tuple[str, Origin]]
"""The words that one argument of a call stands for."""

_FALSE = frozenset({"0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"})


class Function(msgspec.Struct, frozen=True):
    """A function or macro, with the folder of the file that defines it."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Command, ...]
    folder: str
    is_macro: bool


class Scope:
    """The variables of a folder or of a call; ``label`` is unique, and ``origin`` holds the conditions under which the scope is
    created.
    """

    def __init__(self, parent: Scope | None = None, label: str = "", origin: frozenset[Choice] = ALWAYS) -> None:
        self.parent = parent
        self.label = label
        self.origin = origin
        self.variables: dict[str, Values] = {}
        self.writes: dict[str, int] = {}
        self.exact: set[str] = set()

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and the enclosing ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def find(self, name: str) -> Values | None:
        """Return the words of a variable, or None if it is not set."""
        return next((item.variables[name] for item in self.chain() if name in item.variables), None)

    def put(self, name: str, values: Values, *, exact: bool = False) -> None:
        """Set a variable; ``exact`` if nothing else can be in it."""
        self.variables[name] = values
        self.writes[name] = self.writes.get(name, 0) + 1
        (self.exact.add if exact else self.exact.discard)(name)

    def version(self, name: str) -> str:
        """Return a text that differs between variables of the same name, and between the values of one; empty for the first
        value at the top level.
        """
        owner = next((item for item in self.chain() if name in item.variables), None)
        if owner is None or (not owner.label and owner.writes.get(name, 0) < 2):
            return ""
        return f" {name} {owner.writes.get(name, 0)} {owner.label}"

    def truth(self, name: str, here: frozenset[Choice]) -> bool | None:
        """Whether a variable is true under some conditions; None if that is not known."""
        owner = next((item for item in self.chain() if name in item.variables), None)
        if owner is None or name not in owner.exact:
            return None
        values = owner.variables[name]
        sure = [word for word, origin in values.items() if origin is not None and origin <= here]
        if not values:
            return False
        if UNKNOWN in values or not sure:
            return None
        return len(values) > 1 or not (sure[0].upper() in _FALSE or sure[0].upper().endswith("-NOTFOUND"))


class Frame(msgspec.Struct):
    """The context of a command: its scope; the folders of the build, of the file and of the function; the arguments of the call,
    and those that a macro substitutes for variables.
    """

    scope: Scope
    folder: str
    file: str
    function: str
    arguments: Sequence[Argument] = ()
    rest: Sequence[Argument] = ()
    replaced: Mapping[str, Values] = {}


def bound(function: Function, arguments: Sequence[Argument]) -> dict[str, Values]:
    """Return the variables that a call of a function sets."""
    found: dict[str, Values] = {f"ARGV{at}": dict(item) for at, item in enumerate(arguments[:50])}
    for name, item in zip(function.parameters, arguments, strict=False):
        found[name] = dict(item) if item else {UNKNOWN: ALWAYS}
    return found


def keyword_arguments(
    prefix: str, keywords_by_kind: Iterable[Iterable[str]], arguments: Iterable[Argument]
) -> dict[str, Values]:
    """Return the variables that ``cmake_parse_arguments`` sets; its keywords take no word, one, or many."""
    flags, one, many = map(frozenset, keywords_by_kind)
    keywords = flags | one | many
    found: dict[str, Values] = {f"{prefix}_{name}": {} for name in keywords}
    rest = found[f"{prefix}_UNPARSED_ARGUMENTS"] = {}
    target: Values = rest
    takes_one = False
    for words in _apart(arguments, keywords):
        word = words[0][0] if len(words) == 1 else None
        if word in keywords:
            target, takes_one = found[f"{prefix}_{word}"], word in one
            if word in flags:
                target["TRUE"] = words[0][1]
                target = rest
            continue
        for text, origin in words:
            target.setdefault(text, origin)
        if takes_one:
            target, takes_one = rest, False
    return found


def _apart(arguments: Iterable[Argument], keywords: frozenset[str]) -> Iterator[Argument]:
    """Yield arguments, word by word if a list contains keywords."""
    for argument in arguments:
        if any(word in keywords for word, _ in argument):
            yield from ([item] for item in argument)
        elif argument:
            yield argument


def alternatives(arguments: Sequence[Argument], most: int) -> list[frozenset[Choice]]:
    """Return the conditions that determine the first argument with a small number of possible values."""
    for argument in arguments:
        origins = [origin for _, origin in argument if origin is not None]
        if 2 <= len(argument) == len(origins) <= most and all(
            _exclude(one, other) for at, one in enumerate(origins) for other in origins[:at]
        ):
            return origins
    return []


def compatible(arguments: Sequence[Argument], origin: frozenset[Choice]) -> list[Argument]:
    """Return the arguments that are possible under some conditions."""
    return [[item for item in argument if item[1] is None or not _exclude(item[1], origin)] for argument in arguments]


def _exclude(one: frozenset[Choice], other: frozenset[Choice]) -> bool:
    return any((text, not value) in other for text, value in one)

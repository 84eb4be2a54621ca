"""Words of a file's calls and decorators, with the functions that contain them, so that other functions need not be decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TypeAlias

import msgspec

from opschema_cli.source.python import Expr, Import, PythonFile, Scope

Starts: TypeAlias = dict[str, list[int]]
"""Definitions by word: the places of the names of functions and classes, -1 for the module."""

MODULE = -1


class WordIndex(msgspec.Struct):
    """The bodies of one file that call functions, by the last words of these; its decorated functions, by the last words of the
    decorators; and the aliases that imports and assignments give to a word.
    """

    calls: Starts = {}
    decorators: Starts = {}
    aliases: dict[str, list[str]] = {}


def scopes_of(file: PythonFile, *, keep: bool) -> Iterator[tuple[int, Scope]]:
    """Yield the scopes of a file, the module's first, each with the place of its definition's name. With ``keep``, functions
    stay decoded.
    """
    waiting: list[tuple[int, Scope]] = [(MODULE, file.body)]
    while waiting:
        start, scope = waiting.pop()
        yield start, scope
        waiting += ((item.start, item.body if keep else item.peek_body()) for item in scope.functions)
        waiting += ((item.start, item.body) for item in scope.classes)


def index_words(scopes: Iterable[tuple[int, Scope]]) -> WordIndex:
    """Index the words of a file with these scopes."""
    found = WordIndex({}, {}, {})
    for start, scope in scopes:
        for word in {called_word(call.items[0]) for call in scope.calls}:
            found.calls.setdefault(word, []).append(start)
        for word, other in set(_aliases(scope)):
            found.aliases.setdefault(word, []).append(other)
        for function in scope.functions:
            for word in {called_word(item) for item in function.decorators}:
                found.decorators.setdefault(word, []).append(function.start)
    return found


def called_word(callee: Expr) -> str:
    """Return the last word of a callee: ``f`` in ``a.f``, ``a.f[0]`` and ``a.f(x)``."""
    while callee.kind in ("call", "subscript"):
        callee = callee.items[0]
    return callee.text.rpartition(".")[2]


def _aliases(scope: Scope) -> Iterator[tuple[str, str]]:
    for item in scope.imports:
        yield from _alias(_imported(item), item.name)
    for assign in scope.assigns:
        if assign.value is not None and assign.value.kind == "name":
            yield from _alias(assign.value.text, assign.target)


def _imported(item: Import) -> str:
    return item.attr or item.module


def _alias(dotted: str, name: str) -> Iterator[tuple[str, str]]:
    word, other = dotted.rpartition(".")[2], name.rpartition(".")[2]
    if word != other:
        yield word, other


def joined_aliases(indexes: Iterable[WordIndex]) -> dict[str, set[str]]:
    """Return the aliases of words in any of some files."""
    found: dict[str, set[str]] = {}
    for index in indexes:
        for word, others in index.aliases.items():
            found.setdefault(word, set()).update(others)
    return found


def aliased(words: Iterable[str], aliases: Mapping[str, Set[str]]) -> frozenset[str]:
    """Return words together with their aliases, given the joined aliases of some files."""
    found = set(words)
    waiting = list(found)
    while waiting:
        fresh = aliases.get(waiting.pop(), frozenset()) - found
        found |= fresh
        waiting += fresh
    return frozenset(found)

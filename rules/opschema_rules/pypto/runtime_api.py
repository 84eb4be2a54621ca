"""The classes and functions of the runtime's interface, as the headers in the tree declare them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.project import Project
from opschema_cli.source.text import places_of, words_in
from opschema_cli.workspace import Workspace

_FUNCTIONS = "pto_orchestration_api.h"
_HEADER = re.compile(
    r"(?:^|/)(?:pto_(?:types|submit_types|orchestration_api|arg_with_deps)|task_args|tensor|tensor_create_info|data_type|common)\.h\Z"
)
_INCLUDED = re.compile(r"\.(?:h|hh|hpp|hxx|inc|inl|ipp|cuh)\Z")
_BODY = re.compile(r"\s*(?:final\s*)?(?::(?!:)([^{};()]*))?\{")
_KIND = re.compile(r"\b(enum\s+)?(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?\Z")
_ALIAS, _ALIASED = re.compile(r"\busing\s+\Z"), re.compile(r"\s*=\s*(\w+)\b")
_BASE = re.compile(r"(?:^|,)\s*(?:(?:public|private|protected|virtual)\s+)*([\w:]+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_HEAD = 80
"""Most characters in front of a name that tell how it is declared."""


class Interface:
    """The runtime's interface. Each class has all words of all its definitions: a name that is not among these is surely none of
    its members.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._members: dict[str, frozenset[str] | None] = {}
        self._known: dict[str, bool] = {}

    @cached_property
    def _texts(self) -> list[str]:
        paths = (path for path in self._workspace.files if _HEADER.search(path))
        return [data.decode("utf-8", "replace") for data in dict.fromkeys(map(self._workspace.peek, paths))]

    @cached_property
    def _words(self) -> set[str]:
        return set[str]().union(*map(words_in, self._texts))

    @cached_property
    def _included(self) -> bytes:
        """All files of the tree that others may include."""
        return b"\n".join(self._workspace.peek(path) for path in self._workspace.files if _INCLUDED.search(path))

    @cached_property
    def _has_functions(self) -> bool:
        return any(path.endswith(f"/{_FUNCTIONS}") for path in self._workspace.files)

    def members(self, name: str) -> frozenset[str] | None:
        """The words among which are the members of a class or enumeration; None where the tree does not show them all."""
        if name not in self._members:
            self._members[name] = None  # while its bases are looked up, which may be built on it in turn
            found = [item for text in self._texts for item in _definitions(name, text)]
            inherited = [self.members(base) for base in sorted({base for _, bases in found for base in bases})]
            known = [item for item in inherited if item is not None]
            is_whole = bool(found) and len(known) == len(inherited)
            self._members[name] = frozenset[str]().union(*known, *(words for words, _ in found)) if is_whole else None
        return self._members[name]

    def may_declare(self, name: str) -> bool:
        """Whether any header of the tree has a word; true where the tree has no interface for orchestrations."""
        if not self._has_functions or name in self._words:
            return True
        if name not in self._known:
            word = name.encode()
            self._known[name] = word in self._included and next(places_of(word, self._included), None) is not None
        return self._known[name]


@cached_on_argument
def interface_of(project: Project) -> Interface:
    """The interface of the runtimes that are part of the tree."""
    return Interface(project.workspace)


def _definitions(name: str, text: str) -> Iterator[tuple[set[str], list[str]]]:
    """The words of each definition of a class in a header, and its bases; an alias has no words."""
    for at in places_of(name, text):
        head, end = text[max(0, at - _HEAD) : at], at + len(name)
        kind, body = _KIND.search(head), _BODY.match(text, end)
        if kind is not None and body is not None:
            bases = _BASE.findall(_without_arguments(body[1])) if body[1] and not kind[1] else []
            yield words_in(_COMMENT.sub("", text[body.end() : _end(text, body.end())])), bases
        elif _ALIAS.search(head) and (alias := _ALIASED.match(text, end)) is not None:
            yield set(), [alias[1]]


def _end(text: str, start: int) -> int:
    """The end of a block that begins before ``start``."""
    depth = 1
    for match in _BRACE.finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    return len(text)


def _without_arguments(bases: str) -> str:
    """A list of bases without template arguments."""
    depth, kept = 0, []
    for character in bases:
        depth += character == "<"
        if not depth:
            kept.append(character)
        depth -= character == ">"
    return "".join(kept)

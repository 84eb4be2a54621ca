"""The classes and functions of the runtime's interface, as the headers in the tree declare them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.project import Project
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import ascii_words_in, places_of, words_in
from opschema_cli.workspace import Workspace

_FUNCTIONS = "pto_orchestration_api.h"
_HEADER = re.compile(
    r"(?:^|/)(?:pto_(?:types|submit_types|orchestration_api|arg_with_deps)|task_args|tensor|tensor_create_info|data_type|common)\.h\Z"
)
_INCLUDED = re.compile(r"\.(?:h|hh|hpp|hxx|inc|inl|ipp|cuh)\Z")
_BODY = re.compile(r"\s*(?:final\s*)?(?::(?!:)([^{};()]{0,1000}))?\{")
_KIND = re.compile(r"\b(enum\s+)?(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?\Z")
_ALIAS, _ALIASED = re.compile(r"\busing\s+\Z"), re.compile(r"\s*=\s*(\w+)\b")
_BASE = re.compile(r"(?:^|,)\s*(?:(?:public|private|protected|virtual)\s+)*([\w:]+)")
_BRACE = re.compile(r"[{}]")
_HEAD = 80
"""Maximum number of characters before a name that show how it is declared."""


class Interface:
    """The runtime's interface. Each class has all words of all its definitions: a name that is not among these is known not to
    be a member.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._members: dict[str, frozenset[str] | None] = {}
        self._constants: dict[str, int | None] = {}

    @cached_property
    def _texts(self) -> list[tuple[str, dict[int, int]]]:
        """The code of each header, and the ends of its blocks."""
        paths = (path for path in self._workspace.files if _HEADER.search(path))
        found = dict.fromkeys(map(self._workspace.peek, paths))
        texts = [only_code(data.decode("utf-8", "replace")) for data in found]
        return [(text, block_ends(text)) for text in texts]

    @cached_property
    def _words(self) -> set[str]:
        return set[str]().union(*(words_in(text) for text, _ in self._texts))

    @cached_property
    def _included(self) -> set[bytes]:
        """The words of all files of the tree that others may include."""
        paths = (path for path in self._workspace.files if _INCLUDED.search(path))
        return set[bytes]().union(*(ascii_words_in(self._workspace.peek(path)) for path in paths))

    @cached_property
    def _has_functions(self) -> bool:
        return any(path.endswith(f"/{_FUNCTIONS}") for path in self._workspace.files)

    def members(self, name: str) -> frozenset[str] | None:
        """Return the words that include all members of a class or enumeration; None if the tree does not show them all."""
        if name not in self._members:
            words: set[str] = set()
            is_whole, seen, left = True, {name}, [name]
            while left and is_whole:
                found = [item for text, ends in self._texts for item in _definitions(left[-1], text, ends)]
                left.pop()
                is_whole = bool(found)
                words.update(*(own for own, _ in found))
                bases = sorted({base for _, own in found for base in own} - seen)
                seen.update(bases)
                left += bases
            self._members[name] = frozenset(words) if is_whole else None
        return self._members[name]

    def constant(self, name: str) -> int | None:
        """Return the value of a constant in the tree's headers; None if they do not give it exactly one."""
        if name not in self._constants:
            pattern = re.compile(rf"\bconstexpr\s+\w+\s+{name}\s*=\s*(\d+)\s*;".encode())
            paths = (path for path in self._workspace.files if path.endswith(".h") and path.startswith("src/"))
            found = {int(match[1]) for path in paths for match in pattern.finditer(self._workspace.peek(path))}
            self._constants[name] = found.pop() if len(found) == 1 else None
        return self._constants[name]

    @cached_property
    def converts_scalars(self) -> bool:
        """Whether ``add_scalar()`` of a runtime converts its argument to an integer, as older ones do."""
        return any(_ADDS_INTEGER.search(text) is not None for text, _ in self._texts)

    @cached_property
    def holds_references(self) -> bool:
        """Whether task payloads hold tensors as ``TensorRef``, which cannot be copied, in all headers."""
        known = [text for text, ends in self._texts if next(_definitions("TensorRef", text, ends), None) is not None]
        is_held = any(_HELD.search(text) is not None for text, _ in self._texts)
        return is_held and bool(known) and all(_UNCOPIED.search(text) is not None for text in known)

    def has_header(self, name: str) -> bool:
        """Whether a header is part of the tree."""
        return any(path == name or path.endswith(f"/{name}") for path in self._workspace.files)

    def may_declare(self, name: str) -> bool:
        """Whether any header of the tree contains a word; true if the tree has no interface for orchestrations."""
        if not self._has_functions or name in self._words or not name.isascii():
            return True
        return name.encode() in self._included


_ADDS_INTEGER = re.compile(r"\badd_scalar\s*\(\s*u?int64_t\b")
_HELD = re.compile(r"\bTaskArgsTpl\s*<\s*TensorRef\b")
_UNCOPIED = re.compile(r"\bTensorRef\s*&\s*operator=\s*\(\s*const\s+TensorRef\s*&\s*\)\s*=\s*delete\b")


@cached_on_argument
def interface_of(project: Project) -> Interface:
    """Return the interface of the runtimes in the tree."""
    return Interface(project.workspace)


def _definitions(name: str, text: str, ends: dict[int, int]) -> Iterator[tuple[set[str], list[str]]]:
    """Yield the words of each definition of a class in a header, and its bases; an alias has no words."""
    read = 0
    for at in places_of(name, text):
        head, end = text[max(0, at - _HEAD) : at], at + len(name)
        kind = _KIND.search(head)
        body = _BODY.match(text, end) if kind is not None else None
        if kind is not None and body is not None:
            bases = _BASE.findall(_without_arguments(body[1])) if body[1] and not kind[1] else []
            start, read = max(read, body.end()), max(read, ends.get(body.end() - 1, len(text)))
            yield words_in(text[start:read]), bases
        elif _ALIAS.search(head) and (alias := _ALIASED.match(text, end)) is not None:
            yield set(), [alias[1]]


def block_ends(code: str) -> dict[int, int]:
    """Return the place of the closing brace of each block, by the place of its opening brace."""
    found: dict[int, int] = {}
    begun: list[int] = []
    for match in _BRACE.finditer(code):
        if match[0] == "{":
            begun.append(match.start())
        elif begun:
            found[begun.pop()] = match.start()
    return found


def _without_arguments(bases: str) -> str:
    """A list of bases without template arguments."""
    depth, kept = 0, []
    for character in bases:
        depth += character == "<"
        if not depth:
            kept.append(character)
        depth -= character == ">"
    return "".join(kept)

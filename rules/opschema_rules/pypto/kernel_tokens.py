"""Tokens of one C++ statement, and the few forms needed to follow a kernel's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from opschema_cli.source.text import Span

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|->|::|<<=?|[-+*/%&|^=!<>]=|&&|\|\||\+\+|--|\.\.\.|[^\s\w]")
_ARGUMENTS = re.compile(r"(?<=\w)(?<!_cast)<[\w\s:,.*&+-]*>(?=\s*(?:[({,>)*&;]|::|[A-Za-z_]|\Z))")
_ROUNDS = 4
MAX_ANGLE = 500
"""Maximum number of tokens in a list of template arguments."""

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
ASSIGNING = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="))
_QUALIFIER = re.compile(
    r"(?:const|constexpr|static|volatile|inline|typename|struct|register|mutable|extern|thread_local|__\w+__)\Z"
)
_PLAIN_TYPE = re.compile(
    r"(?:auto|unsigned|signed|long|short|int|char|float|double|bool|half|void|u?int(?:ptr|\d+)_t|size_t)\Z"
)
_IN_TYPE = re.compile(r"[A-Za-z_]\w*\Z|\d[\w.']*\Z|(?:::|,|\*|&|\+|-|/|%|\.\.\.)\Z")


def without_arguments(text: str) -> str:
    """Return a text with spaces in place of template arguments, except those of casts, whose type matters."""
    if "<" not in text:
        return text
    for _ in range(_ROUNDS):
        shorter = _ARGUMENTS.sub(_spaces, text)
        if shorter == text:
            break
        text = shorter
    return text


def _spaces(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


@lru_cache(maxsize=4096)
def is_name(token: str) -> bool:
    """Whether a token is an identifier or a keyword."""
    return _NAME.match(token) is not None


@lru_cache(maxsize=4096)
def _is_qualifier(token: str) -> bool:
    return _QUALIFIER.match(token) is not None


@lru_cache(maxsize=4096)
def _may_be_in_type(token: str) -> bool:
    return _IN_TYPE.match(token) is not None


class Tokens:
    """The tokens of one piece without template arguments, and the partner of each bracket that has one."""

    def __init__(self, text: str, start: int) -> None:
        self._text = without_arguments(text)
        self._start = start
        self.words: list[str] = _TOKEN.findall(self._text)
        self._kinds = frozenset(self.words)
        self.partner: dict[int, int] = {}
        waiting: list[int] = []
        for index, word in enumerate(self.words):
            if word in "([":
                waiting.append(index)
            elif word in ")]" and waiting:
                self.partner[waiting.pop()] = index

    def __len__(self) -> int:
        return len(self.words)

    def span(self, first: int, behind: int) -> Span:
        """Return the span in the file from one token up to another."""
        last = min(behind, len(self.words)) - 1
        return Span(self._offsets[first], self._offsets[last] + len(self.words[last]))

    @cached_property
    def _offsets(self) -> list[int]:
        return [self._start + match.start() for match in _TOKEN.finditer(self._text)]

    def word(self, index: int, end: int) -> str:
        """Return the token at an index; empty from ``end`` on."""
        return self.words[index] if index < end else ""

    def behind_angle(self, index: int, end: int) -> int:
        """Return the index after a list of template arguments that begins at ``index``; ``index`` itself if there is none."""
        if self.word(index, end) != "<":
            return index
        depth, at, last = 0, index, min(end, index + MAX_ANGLE)
        while at < last:
            word = self.words[at]
            if word == "<":
                depth += 1
            elif word == ">":
                depth -= 1
                if depth == 0:
                    return at + 1
            elif word in "([" and at in self.partner:
                at = self.partner[at]
            elif not _may_be_in_type(word):
                return index
            at += 1
        return index

    def behind_name(self, index: int, end: int) -> tuple[str, int]:
        """Return the last part of a qualified name, and the index after it; template arguments count if something follows them."""
        name, at = self.words[index], index + 1
        while at < end:
            behind = self.behind_angle(at, end)
            if behind > at and (self.word(behind, end) in ("(", "::", "") or self._declares(behind, end)):
                at = behind
            elif self.words[at] == "::" and at + 1 < end and is_name(self.words[at + 1]):
                name, at = self.words[at + 1], at + 2
                if name == "template" and at < end:
                    name, at = self.words[at], at + 1
            else:
                break
        return name, at

    def _declares(self, index: int, end: int) -> bool:
        word = self.word(index, end)
        return is_name(word) or (word in ("*", "&", "&&") and is_name(self.word(index + 1, end)))

    def declared(self, start: int, end: int) -> tuple[str, int] | None:
        """Return the first name that a statement declares, and the index after it; None if it declares none."""
        at, has_type = start, False
        while at < end:
            word = self.words[at]
            if word == "__attribute__" and at + 1 in self.partner:
                at = self.partner[at + 1] + 1
            elif _is_qualifier(word):
                at += 1
            elif is_name(word):
                _, behind = self.behind_name(at, end)
                if has_type and not (_PLAIN_TYPE.match(word) and is_name(self.word(behind, end))):
                    return (word, behind) if behind == at + 1 else None
                has_type, at = True, behind
            elif word in ("*", "&", "&&") and has_type:
                at += 1
            else:
                return None
        return None

    def is_type(self, start: int, end: int) -> bool:
        """Whether tokens in brackets are known to be a type: a pointer or number type."""
        at = start
        named = False
        while at < end and (is_name(self.words[at]) or self.words[at] == "::"):
            named = named or not _is_qualifier(self.words[at])
            at = self.behind_name(at, end)[1] if is_name(self.words[at]) else at + 1
        if not named:
            return False
        if at == end:
            return _PLAIN_TYPE.match(self.words[end - 1]) is not None
        return all(word in ("*", "&", "const", "volatile") or word.startswith("__") for word in self.words[at:end])

    def split(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches between commas outside of brackets and template arguments."""
        first = at = start
        if "," not in self._kinds:
            at = end
        while at < end:
            word = self.words[at]
            if word in ("(", "[") and at in self.partner:
                at = self.partner[at]
            elif word == "<":
                behind = self.behind_angle(at, end)
                if behind > at and (self.word(behind, end) in ("(", "::") or self._declares(behind, end)):
                    at = behind - 1
            elif word == ",":
                yield first, at
                first = at + 1
            at += 1
        if first < end:
            yield first, end

    def find(self, words: frozenset[str], start: int, end: int) -> int:
        """Return the first of some tokens outside of brackets; -1 if there is none."""
        at = end if words.isdisjoint(self._kinds) else start
        while at < end:
            word = self.words[at]
            if word in words:
                return at
            at = self.partner[at] + 1 if word in ("(", "[") and at in self.partner else at + 1
        return -1

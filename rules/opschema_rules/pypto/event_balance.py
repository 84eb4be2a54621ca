"""How often the code of a C++ file sets an event beyond its waits for it, whichever way it takes through branches and loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from opschema_cli.source.cpp_text import only_code


class Net(NamedTuple):
    """What code adds to a count: ``once``, and then ``each`` several times or never, by a loop or a branch."""

    once: int = 0
    each: int = 0

    @property
    def sign(self) -> int | None:
        """1 where nothing is subtracted, -1 where nothing is added, 0 where neither is; None where both are."""
        signs = {_sign(self.once), _sign(self.each)} - {0}
        return None if len(signs) == 2 else signs.pop() if signs else 0


Counts: TypeAlias = dict[str, "Net | None"]
"""What code adds to the count of each key that it names; None where that is not known."""

_TOKEN = re.compile(
    r"[{}();]|\b(?:if|else|for|while|do|switch|try|catch|return|break|continue|throw)\b|\b(?:set|wait)_flag\("
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|el|endif)|[{}]", re.MULTILINE)
_LEAVES = frozenset({"return", "break", "continue", "throw"})

MAX_DEPTH = 100
"""Most statements around another."""


def balances(text: str, places: Mapping[int, tuple[str, int]]) -> list[Counts]:
    """What each function of a file adds; ``places`` are the calls that count, each with its key and what it adds. Empty where the
    blocks of the file are not clear.
    """
    if not _is_regular(only_code(text)):
        return []
    reader = _Reader(only_code(text, directives=False), places)
    try:
        reader.declarations(0)
    except _UnclearError:
        return []
    return reader.functions


def _is_regular(code: str) -> bool:
    """Whether each part of a conditional directive holds entire blocks."""
    depth, around = 0, list[int]()
    for mark in _DIRECTIVE.finditer(code):
        if mark[0] in "{}":
            depth += 1 if mark[0] == "{" else -1
        elif mark[1] == "if":
            around.append(depth)
        elif not around or around[-1] != depth:
            return False
        elif mark[1] == "endif":
            around.pop()
    return depth == 0 and not around


class _UnclearError(Exception):
    """The code has a form that is not read."""


class _Reader:
    """Reads blocks and statements, one token after the other."""

    def __init__(self, code: str, places: Mapping[int, tuple[str, int]]) -> None:
        self._code = code
        self._places = places
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(code)
        self._leaving = 0
        """How many statements were read that leave a loop or function."""
        self.functions: list[Counts] = []
        self._token = ""
        self._start = self._end = 0
        self._next()

    def _next(self) -> None:
        """Go on to the next token; the empty one is the end."""
        self._end = self._start + len(self._token)
        match = next(self._tokens, None)
        self._token, self._start = (match[0], match.start()) if match is not None else ("", len(self._code))

    def _take(self, token: str) -> None:
        if self._token != token:
            raise _UnclearError
        self._next()

    def declarations(self, depth: int) -> None:
        """What stands outside of functions, up to the end of the block: functions, and what holds some."""
        called = False
        while self._token and self._token != "}":
            token = self._token
            if token == "{":
                if depth > MAX_DEPTH:
                    raise _UnclearError
                self._next()
                if called:
                    self.functions.append(self._block(0))
                else:
                    self.declarations(depth + 1)
                    self._take("}")
                called = False
            elif token == "(":
                self._skip({})
                called = True
            elif token == ";":
                called = False
                self._next()
            else:  # a statement: this is no declaration
                raise _UnclearError

    def _block(self, depth: int) -> Counts:
        """The statements up to the end of a block."""
        found: Counts = {}
        while self._token != "}":
            if not self._token:
                raise _UnclearError
            _add(found, self._statement(depth + 1))
        self._next()
        return found

    def _statement(self, depth: int) -> Counts:
        if depth > MAX_DEPTH:
            raise _UnclearError
        before = self._code[self._end : self._start].strip()
        if before:  # an expression, a declaration or a label
            return self._plain()
        match self._token:
            case "{":
                self._next()
                return self._block(depth)
            case "if":
                return self._if(depth)
            case "for" | "while" | "switch" | "do":
                return self._repeated(depth)
            case "set_flag(" | "wait_flag(":
                return self._call()
            case "else" | "catch" | "}" | ")":
                raise _UnclearError
        return self._plain()

    def _call(self) -> Counts:
        """A call that is a statement of its own."""
        key, step = self._places.get(self._start, ("", 0))
        self._next()
        self._take(")")
        self._take(";")
        return {key: Net(step)} if key else {}

    def _if(self, depth: int) -> Counts:
        found: Counts = {}
        self._next()
        self._condition(found)
        one, other = self._branch(depth), dict[str, "Net | None"]()
        if self._token == "else" and not self._code[self._end : self._start].strip():
            self._next()
            other = self._branch(depth)
        for key in {**one, **other}:
            _add(found, {key: _either(one.get(key, Net()), other.get(key, Net()))})
        return found

    def _branch(self, depth: int) -> Counts:
        """A branch; what one adds that may be left is not known where the branches meet."""
        leaving = self._leaving
        found = self._statement(depth)
        return found if self._leaving == leaving else {key: net if net == Net() else None for key, net in found.items()}

    def _repeated(self, depth: int) -> Counts:
        """A loop or `switch`: only a loop is known, and none that may be left in a turn."""
        word, found, leaving = self._token, dict[str, "Net | None"](), self._leaving
        self._next()
        if word != "do":
            self._condition(found)
        _add(found, self._statement(depth))
        if word == "do":
            self._take("while")
            self._condition(found)
            self._take(";")
        is_known = word != "switch" and self._leaving == leaving
        return {key: _several(net) if is_known else None for key, net in found.items()}

    def _condition(self, found: Counts) -> None:
        """The brackets behind a keyword."""
        if self._token != "(":
            raise _UnclearError
        self._skip(found)

    def _plain(self) -> Counts:
        """A statement up to its semicolon; how often calls in it are made is not known."""
        found: Counts = {}
        while self._token != ";":
            if self._token == "" or self._token in "})":
                raise _UnclearError
            if self._token.endswith(("(", "{")):
                self._skip(found)
                if self._token == "}":  # behind a local class or a lambda without its semicolon
                    return found
            else:
                self._note(found)
                self._next()
        self._next()
        return found

    def _skip(self, found: Counts) -> None:
        """Go behind the counterpart of a bracket."""
        open_ = 0
        while self._token:
            open_ += self._token.endswith(("(", "{"))
            open_ -= self._token in (")", "}")
            self._note(found)
            self._next()
            if open_ == 0:
                return
        raise _UnclearError

    def _note(self, found: Counts) -> None:
        """Note a token of which it is not known how often it is reached."""
        self._leaving += self._token in _LEAVES
        key = self._places.get(self._start, ("", 0))[0]
        if key:
            found[key] = None


def _add(found: Counts, more: Mapping[str, Net | None]) -> None:
    """Add up what code adds, one behind the other."""
    for key, net in more.items():
        before = found.get(key, Net())
        found[key] = _sum(before, net) if before is not None and net is not None else None


def _sum(one: Net, other: Net) -> Net | None:
    """One behind the other. It is not known what a loop or branch means for an event that is set before it."""
    if (one.once and other.each) or one.each * other.each < 0:
        return None
    return Net(one.once + other.once, one.each + other.each)


def _several(net: Net | None) -> Net | None:
    """The same several times or never."""
    return Net(0, net.once + net.each) if net is not None and net.sign is not None else None


def _either(one: Net | None, other: Net | None) -> Net | None:
    """One of both."""
    if one is None or other is None or one == other:
        return one if one == other else None
    less, more = sorted((one, other), key=lambda net: abs(net.once))
    signs = {less.sign, more.sign, _sign(more.once - less.once)} - {0}
    if None in signs or len(signs) != 1:
        return None
    return Net(less.once, less.each + more.each + more.once - less.once)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)

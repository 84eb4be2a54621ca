"""The balance of events in a C++ file: how often its code sets an event, minus how often it waits for it, on every path."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, TypeAlias

from opschema_cli.source.cpp_text import only_code


class Net(NamedTuple):
    """The amount that code adds to a count: ``once``, and ``each`` any number of times, in a loop or branch."""

    once: int = 0
    each: int = 0

    @property
    def sign(self) -> int | None:
        """1 if nothing is subtracted, -1 if nothing is added, 0 if neither; None if both."""
        signs = {_sign(self.once), _sign(self.each)} - {0}
        return None if len(signs) == 2 else signs.pop() if signs else 0


Counts: TypeAlias = dict[str, "Net | None"]
"""The amounts that code adds to the counts of keys; None if not known."""

_TOKEN = re.compile(
    r"[{}();]|\b(?:if|else|for|while|do|switch|try|catch|return|break|continue|throw)\b|\b(?:set|wait)_flag\("
    r"|\b(?!T[A-Z])[A-Z][A-Z0-9_]+\s*(?=\()|\b\w*(?:abort|exit|trap|unreachable)(?=\s*\()"
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|el|endif)|[{}]", re.MULTILINE)
_DIRECTIVE_LINE = re.compile(r"[ \t]*#")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*\Z")
_CONSTANT = re.compile(r"\(\s*(?:\d+|true|false|;\s*;|!?\s*([A-Za-z_]\w*))\s*\)\Z")
_ENDLESS = re.compile(r"\(\s*(?:[1-9]\d*|true|[^;]*;\s*(?:true\s*)?;[^;]*)\s*\)\Z")
_DECLARES_CONSTANTS = re.compile(
    r"\bconstexpr\b([^;(){}]*)|\bdefine[ \t]+(\w+)|\btemplate\s*<((?:[^;(){}<>]|<[^;(){}<>]*>)*)>"
)
_LEAVES = frozenset({"return", "break", "continue", "throw"})
_KEYWORDS = frozenset({"if", "else", "for", "while", "do", "switch", "try", "catch"})

_LONGEST, _UNNAMED = 200, "?"
"""The longest name of a function that is read, and the name of one that is not."""

MAX_DEPTH = 100
"""Maximum nesting depth of statements."""


def balances(text: str, places: Mapping[int, tuple[str, int]], entry: str) -> list[Counts]:
    """Return the counts of each function of a file, and of the code outside them. ``places`` maps the offset of a call to its key
    and the amount that it adds. ``entry`` is called once, the other functions any number of times. Empty if the blocks of the file
    cannot be read. The text contains no ``goto``, assembler, digraphs or concepts.
    """
    with_directives, code = only_code(text), only_code(text, directives=False)
    if not _is_regular(with_directives) or _UNCLEAR.search(with_directives) or "\\\n" in code:
        return []
    reader = _Reader(code, with_directives, places, entry)
    try:
        reader.declarations(0)
    except _UnclearError:
        return []
    return [*reader.functions, reader.outside]


_UNCLEAR = re.compile(
    r"\bnoreturn\b"
    r"|#[ \t]*define\b(?:[^\n\\]|\\.|\\\n)*(?:[{}]|\b(?:if|else|for|while|do|switch|case|return|break|continue|throw)\b)"
)
"""Functions that do not return, and macros that may leave a function or form blocks."""


def _is_regular(code: str) -> bool:
    """Whether each part of a conditional directive contains complete statements and blocks."""
    depth, around = 0, list[int]()
    for mark in _DIRECTIVE.finditer(code):
        if mark[0] in "{}":
            depth += 1 if mark[0] == "{" else -1
            continue
        if not _ends_statement(code, mark.start()):
            return False
        if mark[1] == "if":
            around.append(depth)
        elif not around or around[-1] != depth:
            return False
        elif mark[1] == "endif":
            around.pop()
    return depth == 0 and not around


def _ends_statement(code: str, at: int) -> bool:
    """Whether a directive follows a complete statement or another directive."""
    while (line := code.rfind("\n", 0, max(at - 1, 0)) + 1) < at:
        before = code[line:at].strip()
        if before:
            return before[-1] in ";{}" or before[0] == "#" or _continues_directive(code, line)
        at = line
    return True


def _continues_directive(code: str, line: int) -> bool:
    """Whether a line continues a directive."""
    while line > 1 and code.startswith("\\\n", line - 2):
        line = code.rfind("\n", 0, line - 1) + 1
        if _DIRECTIVE_LINE.match(code, line):
            return True
    return False


class _UnclearError(Exception):
    """The code has a form that is not read."""


class _Reader:
    """Reads blocks and statements, one token after the other."""

    def __init__(self, code: str, with_directives: str, places: Mapping[int, tuple[str, int]], entry: str) -> None:
        self._code = code
        self._with_directives = with_directives
        self._places = places
        self._entry = entry
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(code)
        self._leaving = 0
        """The number of statements read so far that may leave a loop or function."""
        self.functions: list[Counts] = []
        self.outside: Counts = {}
        """The counts of code outside of functions."""
        self._token = ""
        self._start = self._end = 0
        self._next()

    @cached_property
    def _words(self) -> Counter[str]:
        """The number of times that each word occurs in the code."""
        return Counter(_WORD.findall(self._code))

    def _next(self) -> None:
        """Advance to the next token; an empty one marks the end."""
        self._end = self._start + len(self._token)
        match = next(self._tokens, None)
        self._token, self._start = (match[0], match.start()) if match is not None else ("", len(self._code))

    def _take(self, token: str) -> None:
        if self._token != token:
            raise _UnclearError
        self._next()

    def declarations(self, depth: int) -> None:
        """Read the declarations up to the end of a block: functions, namespaces, classes."""
        name = ""
        while self._token and self._token != "}":
            token = self._token
            if token == "{":
                if depth > MAX_DEPTH:
                    raise _UnclearError
                self._next()
                if name:
                    self._function(name)
                else:
                    self.declarations(depth + 1)
                    self._take("}")
                name = ""
            elif token == "(":
                called = _NAME.search(self._code[max(0, self._start - _LONGEST) : self._start])
                name = name or (called[1] if called is not None else _UNNAMED)
                self._skip(self.outside)
            elif token in _KEYWORDS or token in _LEAVES or token.endswith("("):  # a statement: this is no declaration
                raise _UnclearError
            else:
                name = "" if token == ";" else name
                self._next()

    def _function(self, name: str) -> None:
        """Read the body of a function. If it is called often and may return early, its counts are not known."""
        leaving = self._leaving
        found = self._block(0)
        if name != self._entry and self._leaving != leaving:
            found = dict.fromkeys(found)
        if name in (self._entry, _UNNAMED) or self._words[name] > 1:
            self.functions.append(found)  # of those that are used

    def _block(self, depth: int) -> Counts:
        """Read the statements up to the end of a block; the counts after one that leaves it are not known."""
        found: Counts = {}
        is_left = False
        while self._token != "}":
            if not self._token:
                raise _UnclearError
            ends = self._token in _LEAVES and not self._between()
            more = self._statement(depth + 1)
            _add(found, dict.fromkeys(more) if is_left else more)
            is_left = is_left or ends
        self._next()
        return found

    def _between(self) -> str:
        """Return the text between the previous token and this one."""
        return self._code[self._end : self._start].strip()

    def _statement(self, depth: int) -> Counts:
        if depth > MAX_DEPTH:
            raise _UnclearError
        if self._between():  # an expression, a declaration or a label
            return self._plain()
        match self._token:
            case "{":
                self._next()
                return self._block(depth)
            case "if":
                return self._if(depth + 1)
            case "for" | "while" | "switch" | "do":
                return self._repeated(depth + 1)
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
        is_constexpr = self._between() == "constexpr"
        is_constant = self._is_constant(self._condition(found)) or is_constexpr
        one, other = self._branch(depth), dict[str, "Net | None"]()
        if self._token == "else" and not self._between():
            self._next()
            other = self._branch(depth)
        for key in {**one, **other}:
            nets = one.get(key, Net()), other.get(key, Net())
            _add(found, {key: _either(*nets) if not is_constant or nets[0] == nets[1] else None})
        return found

    def _branch(self, depth: int) -> Counts:
        """Read a branch; if it may be left, its counts are not known after it."""
        leaving = self._leaving
        found = self._statement(depth)
        return found if self._leaving == leaving else {key: net if net == Net() else None for key, net in found.items()}

    def _repeated(self, depth: int) -> Counts:
        """Read a loop or `switch`; only the counts of a loop are known that cannot be left early and may end."""
        word, found, leaving, head = self._token, dict[str, "Net | None"](), self._leaving, ""
        self._next()
        if word != "do":
            head = self._condition(found)
        _add(found, self._statement(depth))
        if word == "do":
            self._take("while")
            head = self._condition(found)
            self._take(";")
        is_endless = word in ("for", "while") and (self._is_constant(head) or _ENDLESS.match(head) is not None)
        is_known = word != "switch" and self._leaving == leaving and not is_endless
        return {key: _several(net) if is_known else None for key, net in found.items()}

    def _condition(self, found: Counts) -> str:
        """Read the brackets after a keyword, and return their text."""
        if self._token != "(":
            raise _UnclearError
        start = self._start
        self._skip(found)
        return self._code[start : self._end]

    def _is_constant(self, head: str) -> bool:
        """Whether a condition may be known at compile time: a number, or a constant of the file."""
        match = _CONSTANT.match(head)
        return match is not None and (match[1] is None or match[1] in self._constants)

    @cached_property
    def _constants(self) -> frozenset[str]:
        """The words of constants, macros and template parameters."""
        found = _DECLARES_CONSTANTS.findall(self._with_directives)
        return frozenset(word for parts in found for part in parts for word in _WORD.findall(part))

    def _plain(self) -> Counts:
        """Read a statement up to its semicolon; it is not known how often calls in it are made."""
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
        """Read up to the bracket that closes this one."""
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
        """Record a token that may be reached any number of times."""
        key = self._places.get(self._start, ("", 0))[0]
        if key:
            found[key] = None
        self._leaving += self._token.isidentifier() and self._token not in _KEYWORDS


def _add(found: Counts, more: Mapping[str, Net | None]) -> None:
    """Add the counts of code that runs next."""
    for key, net in more.items():
        before = found.get(key, Net())
        found[key] = _sum(before, net) if before is not None and net is not None else None


def _sum(one: Net, other: Net) -> Net | None:
    """Return the amount of two parts in a row; None if a loop or branch may use up an event that is set before it."""
    if (one.once and other.each) or one.each * other.each < 0:
        return None
    return Net(one.once + other.once, one.each + other.each)


def _several(net: Net | None) -> Net | None:
    """Return the amount of any number of repetitions."""
    return Net(0, net.once + net.each) if net is not None and net.sign is not None else None


def _either(one: Net | None, other: Net | None) -> Net | None:
    """Return the amount of either of two branches."""
    if one is None or other is None or one == other:
        return one if one == other else None
    less, more = sorted((one, other), key=lambda net: abs(net.once))
    signs = {less.sign, more.sign, _sign(more.once - less.once)} - {0}
    if None in signs or len(signs) != 1:
        return None
    return Net(less.once, less.each + more.each + more.once - less.once)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)

"""The statements of a kernel function: which of them name an identifier, and the block of each."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from opschema_rules.pypto.kernel_text import Function, both, matching, other_core
from opschema_rules.pypto.kernel_tokens import Tokens

_INITIALISER = re.compile(r"(?:[=,(>\]]|\b(?!else\b|do\b|try\b|const\b|noexcept\b|mutable\b)[A-Za-z_]\w*)\s*\Z")
_DEFINES_TYPE = re.compile(r"\b(?:struct|union|class|enum|namespace|extern)\b[^()]*\Z|\)\s*->[^(){};]*\Z")
_BRACE = re.compile(r"[{}]")
_SEPARATOR = re.compile(r"[;{}]")
_BLOCK = re.compile(r"[{}]|for\s*\(")
_LOOP = re.compile(r"(?!.*\b(?:if|else|switch|case|default)\b)\s*(?:(?:for|while|do)\b.*)?", re.DOTALL)
"""The code in front of a block that runs at least once, or until a loop ends."""

_GUARD = re.compile(r"\bif\s*(?:constexpr\s*)?\(\s*(!?)\s*([A-Za-z_]\w*)\s*\)\s*\Z")

SHORT = 5
"""Maximum length of a name to search for with a pattern, which is compiled once."""


MAX_AROUND = 60
"""Maximum number of blocks around a piece to examine."""

REACH = 300
"""Maximum number of characters before a brace that show its purpose."""


class Piece(msgspec.Struct, frozen=True):
    """The text between two of ``;``, ``{`` and ``}``: a statement, or part of one. ``block`` is its block."""

    start: int
    text: str
    block: int
    core: str

    @property
    def code_at(self) -> int:
        """The place of its first character that is no space."""
        return self.start + len(self.text) - len(self.text.lstrip())


class Pieces:
    """The statements of a function. ``around`` is the enclosing block of each block, -1 for the outermost."""

    def __init__(self, function: Function) -> None:
        self._file, self._first = function.file, function.body_at
        self._text = _with_initialisers(function.body)
        self._ends = [match.start() for match in _SEPARATOR.finditer(self._text)]
        self.around = [-1]
        self._conditional = [False]
        self._branch = [False]
        self._starts, self._blocks = [0], [(0, "")]
        self._find_blocks()
        self._pieces: dict[int, Piece] = {}
        self._naming: dict[str, list[int]] = {}
        self._searched: dict[re.Pattern[str], int] = {}

    @property
    def length(self) -> int:
        """The length of the function's body."""
        return len(self._text)

    def piece(self, index: int) -> Piece:
        """Return the piece with a number."""
        found = self._pieces.get(index)
        if found is None:
            start = self._ends[index - 1] + 1 if index else 0
            end = self._ends[index] if index < len(self._ends) else len(self._text)
            block, core = self._blocks[bisect.bisect_right(self._starts, end - 1 if end > start else start) - 1]
            found = Piece(
                self._first + start, self._text[start:end], block, both(self._file.core(self._first + end), core)
            )
            self._pieces[index] = found
        return found

    def blocks_of(self, index: int) -> frozenset[int]:
        """Return the block of a piece and the enclosing ones; if there are very many, the inner ones."""
        found, block = set[int](), self.piece(index).block
        while block >= 0 and len(found) < MAX_AROUND:
            found.add(block)
            block = self.around[block]
        return frozenset(found)

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self._ends) + 1

    def is_plain(self, index: int) -> bool:
        """Whether a piece is only in blocks for cores, and in blocks that are mere scopes."""
        blocks = self.blocks_of(index)
        return len(blocks) < MAX_AROUND and not any(self._conditional[block] for block in blocks)

    def is_branch(self, index: int) -> bool:
        """Whether a piece is in a block that may not run for another reason than a core or the end of a loop."""
        return self._branch[self.piece(index).block]

    def first(self, pattern: re.Pattern[str]) -> int:
        """Return the number of the first piece that matches a pattern; one past the last if none does."""
        if pattern not in self._searched:
            match = pattern.search(self._text)
            at = bisect.bisect_left(self._ends, match.end() - 1) if match is not None else self.count
            self._searched[pattern] = at
        return self._searched[pattern]

    def naming(self, name: str) -> list[int]:
        """Return the numbers of the pieces that name an identifier."""
        if name not in self._naming:
            places = mentions(self._text, name)
            self._naming[name] = list(dict.fromkeys(bisect.bisect_left(self._ends, at) for at in places))
        return self._naming[name]

    def _find_blocks(self) -> None:
        """Find the beginning and end of each block; the header of a loop belongs to the loop's block."""
        text, open_, braces = self._text, [(-1, 0, "")], dict[int, int]()
        ended = ""
        for match in _BLOCK.finditer(text):
            at = match.start()
            self._leave(open_, at)
            if match[0] == "}":
                if len(open_) > 1:
                    core = open_.pop()[2]
                    ended = core if core != open_[-1][2] else ""
                    self._note(at + 1, open_[-1])
            elif match[0] == "{":
                block, guard = braces.get(at), self._guard(at, ended)
                if block is None:
                    block = self._inside(open_[-1][1], "" if guard else _before(text, at))
                open_.append((-1, block, both(open_[-1][2], guard)))
                self._note(at + 1, open_[-1])
                ended = ""
            elif at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
                self._head(at, match.end(), open_, braces)

        self._leave(open_, len(text))

    def _leave(self, open_: list[tuple[int, int, str]], at: int) -> None:
        """Leave the loops without braces that end before a place."""
        while 0 <= open_[-1][0] < at:
            end = open_.pop()[0]
            self._note(end + 1, open_[-1])

    def _head(self, at: int, opened: int, open_: list[tuple[int, int, str]], braces: dict[int, int]) -> None:
        """Enter the header of a loop."""
        text = self._text
        close = matching(text, opened - 1)
        body = close + 1
        while close >= 0 and body < len(text) and text[body].isspace():
            body += 1
        block = self._inside(open_[-1][1], f"{_before(text, at)}for")
        if close >= 0 and text[body : body + 1] == "{":
            braces[body] = block
            self._note(at, (-1, block, open_[-1][2]))
        elif close >= 0:
            end = text.find(";", close)
            open_.append((end if end >= 0 else len(text), block, open_[-1][2]))
            self._note(at, open_[-1])

    def _inside(self, block: int, head: str) -> int:
        """Add a block with the code in front of it. Return its number."""
        self.around.append(block)
        self._conditional.append(bool(head.strip()))
        self._branch.append(self._branch[block] or _LOOP.fullmatch(head) is None)
        return len(self.around) - 1

    def _note(self, at: int, block: tuple[int, int, str]) -> None:
        self._starts.append(max(at, self._starts[-1]))
        self._blocks.append(block[1:])

    def _guard(self, at: int, ended: str) -> str:
        """Return the core that the condition of a block tests for."""
        constants = self._file.core_constants
        if not constants:
            return ""
        text = _before(self._text, at)
        guard = _GUARD.search(text)
        if guard is not None:
            core = constants.get(guard[2], "")
            return other_core(core) if guard[1] else core
        return other_core(ended) if text.strip() == "else" else ""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function; ``is_pack`` for ``Ts... rest`` and ``...``."""

    name: str
    is_reference: bool
    is_pack: bool


def parameters_of(function: Function) -> list[Parameter]:
    """Return the parameters of a function, in order; an unnamed one has an empty name."""
    tokens = Tokens(function.parameters, function.parameters_at)
    found: list[Parameter] = []
    for first, last in tokens.split(0, len(tokens)):
        words = tokens.words[first:last]
        declared = tokens.declared(first, last)
        found.append(Parameter(declared[0] if declared else "", "&" in words or "&&" in words, "..." in words))
    return [] if len(found) == 1 and not found[0].name and tokens.words == ["void"] else found


def mentions(text: str, name: str) -> Iterator[int]:
    """Yield the places of an identifier."""
    if len(name) <= SHORT:
        for match in _short(name).finditer(text):
            before = text[match.start() - 1 : match.start()]
            if not before.isalnum() and before != "_":
                yield match.start()
        return
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        sides = text[at - 1 : at] + text[end : end + 1]
        if not any(side.isalnum() or side == "_" for side in sides):
            yield at
        at = text.find(name, end)


@lru_cache(maxsize=4096)
def _short(name: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}(?!\w)")


def _before(text: str, at: int) -> str:
    """Return the end of the piece before a brace."""
    first = max(text.rfind(sign, at - REACH if at > REACH else 0, at) for sign in ";{}")
    return text[first + 1 if first >= 0 else max(0, at - REACH) : at]


def _with_initialisers(text: str) -> str:
    """Return a body with the braces of initializers replaced by parentheses, so that the remaining braces are those of blocks."""
    found: list[str] = []
    at = 0
    open_: list[bool] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            piece = _before(text, match.start())
            is_value = bool(piece.strip()) and bool(_INITIALISER.search(piece)) and not _DEFINES_TYPE.search(piece)
            open_.append(is_value)
            sign = "(" if is_value else "{"
        else:
            sign = ")" if open_ and open_.pop() else "}"
        found += [text[at : match.start()], sign]
        at = match.end()
    return "".join([*found, text[at:]])

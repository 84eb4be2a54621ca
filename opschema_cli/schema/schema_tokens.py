"""Tokens of a schema string, split like in torch's lexer (torch/csrc/jit/frontend/lexer.h), and the errors in a token."""

from __future__ import annotations

import keyword
import re
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.text import Edit, Span

Fault: TypeAlias = Literal[
    "alias",  # a malformed alias annotation
    "alias-type",  # a value that cannot be written is annotated as written
    "arrow",  # no `->` between arguments and returns
    "character",  # a character that no schema may hold
    "comma",  # a comma too many or too few
    "default",  # a default that is not a literal, or that the type refuses
    "default-order",  # a positional argument without default after one with
    "default-type",  # a default that torch stores but that is not a value of the type
    "duplicate-argument",
    "inplace",  # an in-place name whose `self` or returns do not fit
    "list-size",
    "name",  # the operator's name
    "out",  # out arguments and returns that do not fit together
    "overload-name",
    "removed-type",  # a type that PyTorch had once
    "spacing",  # torchgen takes only one way of writing
    "star",  # `*` twice, or with nothing behind it
    "syntax",
    "tensor-options",
    "too-long",  # beyond what is read
    "type",  # a type that cannot be composed so
    "unclosed",  # a bracket or quote
    "unknown-type",
    "vararg",
]
"""Kind of error, in one word."""


class SchemaError(msgspec.Struct, frozen=True):
    """One fault of a schema string.

    ``edit`` is there where the right text is certain. ``refused`` says that torch itself rejects the schema; what it
    takes though it is a fault (two arguments of one name) has it false.
    """

    kind: Fault
    message: str
    span: Span
    edit: Edit | None = None
    refused: bool = True


_GAP = r"(?:[ \t\n\r\f\v]|\\\n|\#(?![ ]type:)[^\n]*)*"
_NUMBER = r"0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)(?:[pP][+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_STRING = r"""'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|'(?!'')[^'\\\n]*(?:\\.[^'\\\n]*)*'"""


@cache
def _token() -> re.Pattern[str]:
    # Compiled when there is a schema to read: it takes as long as importing several modules.
    return re.compile(
        rf"""({_GAP})([A-Za-z_][A-Za-z_0-9]*|->|\.\.\.|(?:{_NUMBER})j?|[][()*,=?!|:.<>&{{}}~^%@/+-]"""
        rf"""|{_STRING}|{_STRING.replace("'", '"')}|["'][^,)\n]*|[^\x00-\x7f]+|.|\Z)""",
        re.ASCII | re.DOTALL,
    )


_PUNCTUATION = frozenset("+-*/%@()[]:,={}><.?!&^|~")

_NOT_TORCHSCRIPT = ("async", "await", "except", "finally", "from", "lambda", "nonlocal", "try", "yield")

KEYWORDS = frozenset(keyword.kwlist) - set(_NOT_TORCHSCRIPT) | {"Ellipsis", "NoneType"}
"""Words that name nothing in a schema: TorchScript's, whose lexer reads it."""


class Tokens:
    """The tokens of ``text`` with their places. The last one is empty and marks the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts: list[int] = []
        place = 0
        found: list[tuple[str, str]] = _token().findall(text)
        for gap, word in found:
            place += len(gap)
            self.starts.append(place)
            place += len(word)
        self.words = [word for _, word in found]
        while len(self.words) > 1 and not self.words[-2]:
            self.words.pop()
            self.starts.pop()

    def end(self, index: int) -> int:
        """End of a word."""
        return self.starts[index] + len(self.words[index])

    def span(self, first: int, last: int | None = None) -> Span:
        """From one word to another."""
        last = first if last is None else last
        return Span(self.starts[first], self.starts[last] + len(self.words[last]))

    def gap(self, index: int) -> Span:
        """The text between a word and the one before it."""
        return Span(self.end(index - 1) if index else 0, self.starts[index])

    def line_breaks(self) -> list[int]:
        """The words before which a line ends outside of brackets: the schema ends there."""
        if "\n" not in self.text:
            return []
        found, depth = [], 0
        for index, word in enumerate(self.words):
            if index and depth == 0 and "\n" in re.sub(r"\\\n", "", self.text[slice(*self.gap(index))]):
                found.append(index)
            depth += (word in _OPENING) - (word in _CLOSING)
        return found


_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


def is_name(word: str) -> bool:
    """Whether a word can name an operator, a type or an argument."""
    return word.isidentifier() and word.isascii() and word not in KEYWORDS


def is_number(word: str) -> bool:
    """Whether a word is a number without sign."""
    return "0" <= word[:1] <= "9" or (word[:1] == "." and "0" <= word[1:2] <= "9")


def is_string(word: str) -> bool:
    """Whether a word is a string literal."""
    return len(word) > 1 and word[0] in "\"'" and _LITERAL.fullmatch(word) is not None


_LITERAL = re.compile(rf"{_STRING}|{_STRING.replace(chr(39), chr(34))}", re.DOTALL)


def is_stray(word: str) -> bool:
    """Whether a token is not part of the schema language: an unclosed string or a foreign character."""
    if not word or word in _PUNCTUATION or word in ("->", "..."):
        return False
    return not ((word[0].isascii() and (word[0].isalnum() or word[0] == "_")) or is_number(word) or is_string(word))

"""The parts of a C++ text other than code: comments, literals and directives, found without parsing it.

All code that looks at C++ as text uses these functions. They take linear time, and know continued lines, raw strings, the quotes
in numbers (``1'000``) and comments in directives. What ``#if`` leaves out is read like the rest, as compilers do;
:mod:`opschema_cli.source.preprocessor` says under which conditions a place is compiled.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from opschema_cli.source.text import blanked

PartKind: TypeAlias = Literal["comment", "literal", "directive"]


class Part(NamedTuple):
    """A part from ``start`` to ``end``. An unclosed literal ends with its line, an unclosed comment or raw string with the text."""

    kind: PartKind
    start: int
    end: int


_COMMENT_OR_LITERAL = r"""
    //[^\\\r\n]*(?:\\(?:\r?\n)?[^\\\r\n]*)*
  | /\*
  | "[^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*)*"?
  | '[^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*)*'?
"""
_IN_CODE = re.compile(rf"\#|{_COMMENT_OR_LITERAL}", re.VERBOSE)
"""All alternatives begin with one of four characters: searching for these is many times faster than searching for any token."""

_IN_DIRECTIVE = re.compile(rf"\\\r?\n|[\r\n]|{_COMMENT_OR_LITERAL}", re.VERBOSE)
_RAW = re.compile(r'"([^()\\\s]{0,16})\(')
_RAW_PREFIX = re.compile(r"(?:\A|\W)(?:u8|[uUL])?R\Z")
_NUMBER = re.compile(r"(?:\A|[^\w.'])\.?\d[\w.']*\Z")
_LONGEST_NUMBER = 100


def parts(text: str) -> Iterator[Part]:
    """Yield the comments, literals and directives in order of their starts. Those inside a directive follow it."""
    at = line_start = 0
    while (match := _IN_CODE.search(text, at)) is not None:
        start = match.start()
        if text[start] == "#":
            at = start + 1
            if _is_first(text, start, line_start):
                inside, at = _inside_directive(text, at)
                yield Part("directive", start, at)
                yield from inside
        else:
            part, at = _part(text, match)
            if part is not None:
                yield part
                if part.kind == "comment" and _is_first(text, start, line_start):
                    line_start = at


def _part(text: str, match: re.Match[str]) -> tuple[Part | None, int]:
    """Return the comment or literal that begins with a match, and the place to continue from; None for a quote in a number."""
    start, end = match.span()
    opening = text[start]
    if opening == "/":
        if text[start + 1] == "*":
            closed = text.find("*/", end)
            end = closed + 2 if closed >= 0 else len(text)
        return Part("comment", start, end), end
    if opening == "'" and text[start - 1 : start].isalnum() and _is_number(text, start):
        return None, start + 1
    raw = _RAW.match(text, start) if opening == '"' else None
    if raw is not None and _RAW_PREFIX.search(text[max(0, start - 4) : start]) is not None:
        closing = f'){raw[1]}"'
        closed = text.find(closing, raw.end())
        end = closed + len(closing) if closed >= 0 else len(text)
    return Part("literal", start, end), end


def _is_number(text: str, end: int) -> bool:
    return _NUMBER.search(text[max(0, end - _LONGEST_NUMBER) : end]) is not None


def _is_first(text: str, at: int, line_start: int) -> bool:
    """Whether only spaces, and comments that end at ``line_start``, precede a place on its line."""
    while at > line_start and text[at - 1] in " \t":
        at -= 1
    if at in (0, line_start):
        return True
    return text[at - 1] in "\r\n" and text[at - 2 : at - 1] != "\\" and text[at - 3 : at] != "\\\r\n"


def _inside_directive(text: str, at: int) -> tuple[list[Part], int]:
    """Return the comments and literals in a directive, and its end."""
    found: list[Part] = []
    while (match := _IN_DIRECTIVE.search(text, at)) is not None:
        if match[0] in ("\r", "\n"):
            return found, match.start()
        at = match.end()
        if match[0][0] != "\\":
            part, at = _part(text, match)
            if part is not None:
                found.append(part)
    return found, len(text)


@lru_cache(maxsize=2)
def parts_of_file(text: str) -> tuple[Part, ...]:
    """The parts of a file's text, cached for the next caller."""
    return tuple(parts(text))


def without_comments(text: str) -> str:
    """Return a text with one space in place of each comment, as the preprocessor does."""
    if "/" not in text:
        return text
    pieces: list[str] = []
    at = 0
    for kind, start, end in parts(text):
        if kind == "comment":
            pieces += (text[at:start], " ")
            at = end
    return "".join((*pieces, text[at:]))


@lru_cache(maxsize=2)
def only_code(text: str, *, directives: bool = True) -> str:
    """Return a text with its comments and literals blanked, so that offsets and lines stay the same; without ``directives``,
    these are blanked too.
    """
    found = parts_of_file(text)
    return blanked(text, ((start, end) for kind, start, end in found if kind != "directive" or not directives))


def end_of_braces(code: str, at: int, most: int = sys.maxsize) -> int:
    """Return the place after the brace that closes the next opening one, or the one around ``at``, in code without literals; -1 if
    none of the next ``most`` characters does.
    """
    depth = 0
    for match in _BRACE.finditer(code, at, min(len(code), at + most)):
        depth += 1 if match[0] == "{" else -1
        if depth <= 0:
            return match.end()
    return -1


_BRACE = re.compile(r"[{}]")

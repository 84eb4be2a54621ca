"""Globs as git matches them with a path.

Every match takes time in proportion to the path and the pattern. Between stars a pattern has a fixed length, so each stretch
can be taken where it first fits; the same holds of the folders between double stars.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}

_WILD = set("*?[\\")


class MalformedPattern(ValueError):  # noqa: N818 - a property of a text; the caller words the error
    """A pattern that matches nothing in git."""


class _Stretch(msgspec.Struct, frozen=True):
    """Characters without a star."""

    regex: re.Pattern[str]
    length: int


class _Part(msgspec.Struct, frozen=True):
    """Pattern of one part of a path: literal stretches with stars between them."""

    stretches: tuple[_Stretch, ...]

    def matches(self, text: str) -> bool:
        first, *rest = self.stretches
        if not rest:
            return first.regex.fullmatch(text) is not None
        at = first.length
        if not first.regex.match(text):
            return False
        for stretch in rest[:-1]:
            found = stretch.regex.search(text, at)
            if found is None:
                return False
            at = found.end()
        end = len(text) - rest[-1].length
        return at <= end and rest[-1].regex.match(text, end) is not None


class Glob(msgspec.Struct, frozen=True):
    """Runs of parts separated by double stars, after a literal prefix; ``open`` if double stars come last."""

    letters: str
    runs: tuple[tuple[_Part, ...], ...]
    open: bool

    def matches(self, path: str) -> bool:
        """Whether the glob matches a path."""
        if not path.startswith(self.letters):
            return False
        parts = path[len(self.letters) :].split("/")
        first, *rest = self.runs
        if not rest and not self.open:
            return len(first) == len(parts) and _fits(first, parts, 0)
        if not _fits(first, parts, 0):
            return False
        at = len(first)
        for run in rest if self.open else rest[:-1]:
            found = next((place for place in range(at, len(parts)) if _fits(run, parts, place)), None)
            if found is None:
                return False
            at = found + len(run)
        end = len(parts) - (1 if self.open else len(rest[-1]))
        return at <= end and (self.open or _fits(rest[-1], parts, end))


def _fits(run: Sequence[_Part], parts: Sequence[str], at: int) -> bool:
    return at + len(run) <= len(parts) and all(part.matches(parts[at + index]) for index, part in enumerate(run))


def read_glob(text: str) -> Glob:
    """A glob without the slash that it may begin or end with.

    Raises:
        MalformedPattern: git matches nothing with it.
    """
    letters = _letters(text)
    runs: list[list[list[list[str]]]] = [[[[]]]]
    at, was_deep = len(letters), False
    while at < len(text):
        token, at = _token(text, at)
        if token == "**":
            runs[-1].pop()  # the part that would have begun here
            runs.append([[[]]])
        elif token == "/":
            runs[-1].append([[]])
        elif token == "*":
            runs[-1][-1].append([])
        else:
            runs[-1][-1][-1].append(token)
        was_deep = token == "**"
    is_open = was_deep and text.endswith("**")
    found = tuple(tuple(_part(part) for part in run) for run in (runs[:-1] if is_open else runs))
    return Glob(letters, found, is_open)


def _letters(text: str) -> str:
    """Return the literal prefix before leading double stars: git compares it separately, and treats the stars as the beginning
    of the rest.
    """
    end = next((at for at, letter in enumerate(text) if letter in _WILD), len(text))
    return text[:end] if text.startswith("**", end) else ""


def _part(stretches: Sequence[Sequence[str]]) -> _Part:
    return _Part(tuple(_Stretch(re.compile("".join(item), re.DOTALL), len(item)) for item in stretches))


def _token(text: str, at: int) -> tuple[str, int]:
    """A slash, a star, double stars with the slash after them, or a regular expression of one character; and where it ends."""
    letter = text[at]
    if letter == "/":
        return letter, at + 1
    if letter == "?":
        return ".", at + 1
    return _stars(text, at) if letter == "*" else _class(text, at) if letter == "[" else _character(text, at)


def _stars(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    while text[end : end + 1] == "*":
        end += 1
    begins = at == len(_letters(text)) or text[at - 1] == "/"
    if end - at < 2 or not begins or text[end : end + 1] not in ("", "/"):
        return "*", end
    return "**", min(end + 1, len(text))


def _class(text: str, at: int) -> tuple[str, int]:
    """A class of characters."""
    at += 1
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    members: list[str] = []
    while not (members and text[at : at + 1] == "]"):
        member, at = _member(text, at)
        members.append(member)
    return f"[{'^' if negated else ''}{''.join(members)}]", at + 1


def _member(text: str, at: int) -> tuple[str, int]:
    """A character, a range or a named class."""
    if text.startswith("[:", at):
        end = text.find(":]", at)
        name = text[at + 2 : max(end, 0)]
        if name not in _CLASSES:
            raise MalformedPattern
        return _CLASSES[name], end + 2
    first, at = _character(text, at)
    if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
        last, at = _character(text, at + 1)
        return (f"{first}-{last}" if last[-1] >= first[-1] else first), at  # as git reads a range the wrong way round
    return first, at


def _character(text: str, at: int) -> tuple[str, int]:
    at += text[at : at + 1] == "\\"
    if at >= len(text):
        raise MalformedPattern
    return re.escape(text[at]), at + 1

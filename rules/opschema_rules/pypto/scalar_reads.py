"""The types as which code reads scalars, which it gets as 64 bits: ``from_u64<float>(args[2])``, ``static_cast<int>(args[3])``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import ScalarRead, ScalarReading

_NEAR = 120
"""Maximum number of characters before a scalar that show how it is read."""

_MARK = re.compile(r"(?:<\s*|\(\s*)(?:float|double|int|u?int32_t|unsigned)\s*[>)]|\b(?:float|double)\s+\w+\s*=")
"""Part of the code before each scalar that is read as one of the types."""

_CASTS = r"(?:static_cast\s*<\s*u?int64_t\s*>\s*\(\s*|\(\s*u?int64_t\s*\)\s*)?"
_BITS = re.compile(rf"(?<![\w:])from_u64\s*<\s*(float|double)\s*>\s*\(\s*{_CASTS}\Z")
_CONVERTED = re.compile(
    r"(?:\bstatic_cast\s*<\s*(?:float|double)\s*>\s*\(\s*|\(\s*(?:float|double)\s*\)\s*|\b(?:float|double)\s+\w+\s*=\s*)"
    rf"{_CASTS}\Z"
)
_WHOLE = r"(?:(?:std::)?(?:u?int(?:8|16|32|64)_t|size_t)|int|unsigned(?: int)?)"
_INTEGER = re.compile(
    rf"(?:const\s+|constexpr\s+)?\b{_WHOLE}\s+(\w+)\s*=\s*"
    r"(?:static_cast\s*<\s*(?:int|u?int32_t|unsigned)\s*>\s*\(\s*|\(\s*(?:int|u?int32_t|unsigned)\s*\)\s*)\Z"
)
_REINTERPRETS = re.compile(
    r"\b(?:union|memcpy|bit_cast|__builtin_\w*cpy|asm|as_float)\b|##|\bfrom_u64\s*<\s*\w+\s*>\s*\(\s*(?!static_cast)\w+\s*\)"
    r"|\(\s*float\s*[*&]|\breinterpret_cast\s*<[^<>;]*&\s*>"
)
"""Code that may take the bits of an integer for a float."""

_ADDRESS, _ADDED = re.compile(r"&\s*(\w+)"), re.compile(r"\badd_scalars?\w*\(([^;{}]{0,400})")
_WORD = re.compile(r"[A-Za-z_]\w*")
_BRACE, _END, _STATEMENT = re.compile(r"[{}]"), re.compile(r"[;{}]"), re.compile(r"(?m)^[ \t]*#[ \t]*(if|endif)")
_LEAVES = re.compile(r"\b(?:return|goto|throw)\b")
_MAY_NOT_RUN = re.compile(r"\b(?:if|else|for|while|do|switch|case|default|sizeof|decltype)\b|\?|&&|\|\|")
"""Parts of a statement after which the rest may not run."""

_MACRO = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|.)*)")
_OWN = re.compile(r"\bfrom_u64\s*\([^(){};]*\)\s*\{")
"""A function of the file itself, which may convert."""

_COUNTS = (
    re.compile(r"(\w+)\s*\*(?!=)"),
    re.compile(r"\*\s*(\w+)"),
    re.compile(r"(\w+)\s*[/%]\s*(?:[A-Za-z_]|\d{1,3}\b)"),
    re.compile(r"[\w)\]]\[([^\[\]{};]*)\]"),
    re.compile(r"\bfor\s*\([^;{}]{0,200};[^;{}]{0,200}<=?\s*(\w+)\s*;"),
    re.compile(r"(?:>|\b(?!return\b|else\b)[A-Za-z_]\w*)\s+[A-Za-z_]\w*\s*[({]([\w\s.]{0,80},[\w\s,.]{0,200})[)}]\s*;"),
)
"""Uses of an integer as a number: products, indexes, loop bounds, and constructor arguments of a variable."""


def scalar_reads(text: str, start: int, subject: re.Pattern[str], end: int | None = None) -> tuple[ScalarRead, ...]:
    """Return the scalars that the function defined at ``start`` always reads, each with a single type and its first place.

    ``subject`` finds a scalar with its index, such as ``args[2]``. An integer counts where it is kept in a variable whose
    address is not taken, which is not added to a payload, and which is used as a number, in a file that takes no bits of an integer
    for a float.
    """
    places = [match.start() for match in subject.finditer(text, start, len(text) if end is None else end)]
    if not any(_MARK.search(text, max(start, at - _NEAR), at) for at in places):
        return ()
    found: dict[int, list[ScalarRead | None]] = {}
    for match, code in _Code(text, start, end).subjects(subject):
        found.setdefault(int(match[1]), []).append(code.read(match) if code is not None else None)
    return tuple(_agreed(found))


def _agreed(found: dict[int, list[ScalarRead | None]]) -> Iterator[ScalarRead]:
    for reads in found.values():
        first = reads[0]
        if first is not None and all(item is not None and item.reading == first.reading for item in reads):
            yield first


class _Code:
    """The text of a file, and the ``body`` of the function at ``start`` without comments and literals."""

    def __init__(self, text: str, start: int, end: int | None) -> None:
        until = _end_of_block(text, start) if end is None else end
        self.text, self.start = text, start
        self.body = only_code(text[start:until], directives=False)
        self.directives = [(item.start(), item[1]) for item in _STATEMENT.finditer(only_code(text[start:until]))]

    def subjects(self, subject: re.Pattern[str]) -> Iterator[tuple[re.Match[str], _Code | None]]:
        """Yield the scalars in the function, each with this code if it is always read, and None otherwise."""
        depth = seen = begins = at = conditions = 0
        is_sure = not self._may_leave
        for match in subject.finditer(self.body):
            between = self.body[seen : match.start()]
            depth += between.count("{") - between.count("}")
            ends = [item.end() for item in _END.finditer(between)]
            begins = seen + ends[-1] if ends else begins
            while at < len(self.directives) and self.directives[at][0] < match.start():
                conditions += 1 if self.directives[at][1] == "if" else -1
                at += 1
            seen, is_sure = match.start(), is_sure and _LEAVES.search(between) is None
            is_known = is_sure and depth == 1 and not conditions and self._runs(begins, match.start())
            yield match, self if is_known else None

    def _runs(self, begins: int, at: int) -> bool:
        """Whether the short part of a statement between two places has no condition."""
        part = self.body[begins:at].strip()
        is_plain = len(part) <= _NEAR and _MAY_NOT_RUN.search(part) is None
        return is_plain and not _closes(part) and self._macros.isdisjoint(_WORD.findall(part))

    @cached_property
    def _macros(self) -> frozenset[str]:
        return frozenset(item[1] for item in _MACRO.finditer(self.text))

    @cached_property
    def _may_leave(self) -> bool:
        return any(_LEAVES.search(item[2]) is not None for item in _MACRO.finditer(self.text))

    def read(self, match: re.Match[str]) -> ScalarRead | None:
        """Return how a scalar is read at one place; None if that is not known."""
        index, at, end = int(match[1]), match.start(), match.end()
        before, end = self.body[max(0, at - _NEAR) : at], self.start + end
        begins = self.start + at - len(before)
        if before.endswith("*>("):  # a pointer
            return None
        bits = _BITS.search(before)
        if bits is not None:
            if _OWN.search(self.text) is not None:
                return None
            reading: ScalarReading = "float" if bits[1] == "float" else "double"
            return ScalarRead(index, reading, Span(begins + bits.start(), end))
        converted = _CONVERTED.search(before)
        if converted is not None and self.text[end : end + _NEAR].lstrip()[:1] in (")", ";"):
            return ScalarRead(index, "converted", Span(begins + converted.start(), end))
        kept = _INTEGER.search(before)
        is_kept = kept is not None and not self._reinterprets and kept[1] not in self._leaving
        is_integer = kept is not None and is_kept and kept[1] in self._counted
        return ScalarRead(index, "integer", Span(self.start + at, end)) if is_integer else None

    @cached_property
    def _counted(self) -> frozenset[str]:
        """The variables that are used as numbers."""
        uses = (part for pattern in _COUNTS for part in pattern.findall(self.body))
        return frozenset(word for part in uses for word in _WORD.findall(part))

    @cached_property
    def _reinterprets(self) -> bool:
        return _REINTERPRETS.search(self.text) is not None

    @cached_property
    def _leaving(self) -> frozenset[str]:
        """The variables whose bits may be used elsewhere."""
        added = {word for part in _ADDED.findall(self.text) for word in _WORD.findall(part)}
        return frozenset(_ADDRESS.findall(self.text)) | added


def _closes(part: str) -> bool:
    """Whether a part of a statement closes a bracket that it does not open: it may be repeated."""
    depth = 0
    for sign in part:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return True
    return False


def _end_of_block(text: str, start: int) -> int:
    """Return the end of the first block after a place; the end of the text if it is not closed."""
    depth = 0
    code = only_code(text[start:], directives=False)
    for item in _BRACE.finditer(code):
        depth += 1 if item[0] == "{" else -1
        if depth <= 0:
            return start + item.end()
    return len(text)

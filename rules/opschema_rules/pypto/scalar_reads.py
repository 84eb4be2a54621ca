"""The types as which code reads scalars, which it gets as 64 bits: ``from_u64<float>(args[2])``, ``static_cast<int>(args[3])``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import ScalarRead, ScalarReading

_NEAR = 120
"""Most characters before a scalar that tell how it is read."""

_MARK = re.compile(r"(?:<\s*|\(\s*)(?:float|double|int|u?int32_t|unsigned)\s*[>)]|\b(?:float|double)\s+\w+\s*=")
"""Part of the code before each scalar that is read as one of the types."""

_CASTS = r"(?:static_cast\s*<\s*u?int64_t\s*>\s*\(\s*|\(\s*u?int64_t\s*\)\s*)?"
_BITS = re.compile(rf"\bfrom_u64\s*<\s*(float|double)\s*>\s*\(\s*{_CASTS}\Z")
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
    r"|\(\s*float\s*\*"
)
"""Code that may take the bits of an integer for a float."""

_ADDRESS, _ADDED = re.compile(r"&\s*(\w+)"), re.compile(r"\badd_scalars?\w*\(([^;{}]{0,400})")
_WORD = re.compile(r"[A-Za-z_]\w*")


def scalar_reads(text: str, start: int, subject: re.Pattern[str], end: int | None = None) -> tuple[ScalarRead, ...]:
    """The scalars that the function whose definition begins at ``start`` always reads, each as one type only, with its first place.

    ``subject`` finds a scalar with its index, such as ``args[2]``. An integer counts where it is kept in a variable whose
    address is not taken, which is not added to a payload, and in a file that takes no bits of an integer for a float.
    """
    places = [match.span() for match in subject.finditer(text, start, len(text) if end is None else end)]
    if not any(_MARK.search(text, max(start, at - _NEAR), at) for at, _ in places):
        return ()
    code = _Code(text, start, only_code(text[start : places[-1][1]], directives=False))
    found: dict[int, list[ScalarRead | None]] = {}
    depth, seen, is_sure = 0, 0, True
    for match in subject.finditer(code.body):
        between = code.body[seen : match.start()]
        depth += between.count("{") - between.count("}")
        seen, is_sure = match.start(), is_sure and "return" not in between
        read = code.read(match) if is_sure and depth == 1 else None
        found.setdefault(int(match[1]), []).append(read)
    return tuple(_agreed(found))


def _agreed(found: dict[int, list[ScalarRead | None]]) -> Iterator[ScalarRead]:
    for reads in found.values():
        first = reads[0]
        if first is not None and all(item is not None and item.reading == first.reading for item in reads):
            yield first


class _Code:
    """The text of a file, and the ``body`` of a function at ``start`` without comments and literals."""

    def __init__(self, text: str, start: int, body: str) -> None:
        self.text, self.start, self.body = text, start, body

    def read(self, match: re.Match[str]) -> ScalarRead | None:
        """The type as which a scalar is read at one place; None where that is not known."""
        index, at, end = int(match[1]), match.start(), match.end()
        before, end = self.body[max(0, at - _NEAR) : at], self.start + end
        begins = self.start + at - len(before)
        if before.endswith("*>("):  # a pointer
            return None
        bits = _BITS.search(before)
        if bits is not None:
            reading: ScalarReading = "float" if bits[1] == "float" else "double"
            return ScalarRead(index, reading, Span(begins + bits.start(), end))
        converted = _CONVERTED.search(before)
        if converted is not None and self.text[end : end + _NEAR].lstrip()[:1] in (")", ";"):
            return ScalarRead(index, "converted", Span(begins + converted.start(), end))
        kept = _INTEGER.search(before)
        is_integer = kept is not None and not self._reinterprets and kept[1] not in self._leaving
        return ScalarRead(index, "integer", Span(self.start + at, end)) if is_integer else None

    @cached_property
    def _reinterprets(self) -> bool:
        return _REINTERPRETS.search(self.text) is not None

    @cached_property
    def _leaving(self) -> frozenset[str]:
        """The variables whose bits may be used elsewhere."""
        added = {word for part in _ADDED.findall(self.text) for word in _WORD.findall(part)}
        return frozenset(_ADDRESS.findall(self.text)) | added

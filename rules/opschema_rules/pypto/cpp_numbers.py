"""Integers of an orchestration: literals, arithmetic, and variables."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from opschema_rules.pypto.cpp_values import UNKNOWN, Number, Table, Value


def table_of(values: Iterable[Value], size: int = 0) -> Table:
    """Return an array of these values, padded with zeros to a size."""
    found = [item.value if isinstance(item, Number) else None for item in values]
    return Table((*found, *[0] * (min(size, MAX_ITEMS) - len(found))))


def item_of(table: Table, index: Value) -> Value:
    """Return one number of an array."""
    known = isinstance(index, Number) and 0 <= index.value < len(table.items)
    item = table.items[index.value] if isinstance(index, Number) and known else None
    return UNKNOWN if item is None else Number(item)


def truth(value: Value) -> bool | None:
    """Whether a condition holds; None if that is not known."""
    return bool(value.value) if isinstance(value, Number) else None


_NUMBER = re.compile(r"(0[xX][\da-fA-F]{1,16}|0[bB][01]{1,64}|\d{1,19})[uUlLzZ]*")
MAX_ITEMS = 1_000
"""Maximum number of elements of an array to examine."""

MAX_NUMBER = 1 << 62
"""Larger numbers are unknown; no id, index or count is larger."""


@lru_cache(maxsize=1_000)
def number_of(text: str) -> int | None:
    """Return the integer of a C++ literal; None if it is not one, or too large."""
    match = _NUMBER.fullmatch(text.replace("'", ""))
    if match is None:
        return None
    digits = match[1]
    is_octal = digits.isdigit() and digits.startswith("0")
    if is_octal and not re.fullmatch("[0-7]+", digits):
        return None
    found = int(digits, 8 if is_octal else 0)
    return found if found < MAX_NUMBER else None


def computed(sign: str, left: int, right: int) -> Value:
    """Return the result of an operator on two numbers; a negative difference is unknown, since the operands may be unsigned."""
    if sign in _COMPARED:
        return Number(int(_COMPARED[sign](left, right)))
    if sign in ("/", "%") and (right <= 0 or left < 0):
        return UNKNOWN
    found = _COMPUTED[sign](left, right) if sign in _COMPUTED else MAX_NUMBER
    return Number(found) if abs(found) < MAX_NUMBER and (found >= 0 or min(left, right) < 0) else UNKNOWN


_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPUTED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
}


_FRACTION = re.compile(r"\b(?:float|double|half|bfloat\w*)\b")
_UNSIGNED = re.compile(r"\b(?:uint\w*|unsigned|size_t|auto)\b")
_BITS = re.compile(r"int(8|16)_t\b|\b(char|short)\b")
_KEEPS_BITS = re.compile(
    r"(?:(?:std::)?(?:u?int(?:32|64)_t|size_t|uintptr_t)|int|unsigned(?: int)?|(?:unsigned )?long(?: long)?(?: int)?|auto)"
)
_ZERO = re.compile(r"[-+({\s]*(?:0x0+|[0.]*(?:[eE][-+]?\d+)?)[fFlLuU]*[)}\s]*")
NOTHING = range(0)
"""The values of a variable whose number is never known."""


def is_zero(text: str) -> bool:
    """Whether a text is a zero of any type, possibly in brackets, or empty brackets."""
    return _ZERO.fullmatch(text) is not None


def keeps_bits(of: str) -> bool:
    """Whether a scalar keeps its lower half when converted to a type: an integer of at least 32 bits."""
    return _KEEPS_BITS.fullmatch(of.removeprefix("const ").strip()) is not None


@lru_cache(maxsize=1_000)
def numbers_of(of: str) -> range | None:
    """Return the values that a variable of a type may be known to have; None for all."""
    if _FRACTION.search(of):
        return NOTHING
    if re.search(r"\bbool\b", of):
        return range(2)
    match = _BITS.search(of)
    bits = 62 if match is None else 8 if "8" in match[0] or "char" in match[0] else 16
    if _UNSIGNED.search(of):
        return range(1 << bits)
    return None if match is None else range(-(1 << (bits - 1)), 1 << (bits - 1))

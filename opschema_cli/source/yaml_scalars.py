"""Values of plain scalars under YAML 1.1, as PyYAML's ``safe_load`` reads them."""

from __future__ import annotations

import math
import re
from functools import lru_cache

MAX_DIGITS = 3_500
"""Maximum number of digits of a number; a longer one stays text. Even in base 16, Python can write such a number in decimal."""

# The implicit resolvers of PyYAML 6.0.3, resolver.py; a test compares the results.
_BOOL = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}

_BOOL_SPELLING = re.compile(r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", re.ASCII)

_NULL = {"", "~", "null", "Null", "NULL"}

_INT = re.compile(r"[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)", re.ASCII)

_FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    re.ASCII,
)

TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?"
    r"(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?",
    re.ASCII,
)


@lru_cache(maxsize=65_536)
def plain_value(text: str) -> bool | int | float | str | None:
    """Return the value of a plain scalar's text under YAML 1.1."""
    if text in _NULL:
        return None
    if _BOOL_SPELLING.fullmatch(text):
        return _BOOL[text.lower()]
    if _INT.fullmatch(text):
        try:
            return _integer(text.replace("_", ""))
        except ValueError:
            return text
    if _FLOAT.fullmatch(text):
        return _float(text.replace("_", "").lower())
    return text


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    if len(digits) > MAX_DIGITS:
        raise ValueError(text)
    if ":" in digits:
        value = 0
        for part in digits.split(":"):
            value = value * 60 + int(part)
        return sign * value
    if digits.startswith("0b"):
        return sign * int(digits[2:], 2)
    if digits.startswith("0x"):
        return sign * int(digits[2:], 16)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def as_float(value: int) -> float:
    """Return the float closest to an integer; infinity for one beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def _float(text: str) -> float:
    sign, digits = (-1.0, text[1:]) if text[0] == "-" else (1.0, text.lstrip("+"))
    if digits in {".inf", ".nan"}:
        return sign * float(digits[1:])
    return sign * (_sexagesimal(digits) if ":" in digits else float(digits))


def _sexagesimal(digits: str) -> float:
    value = 0.0
    for part in digits.split(":"):
        value = value * 60 + float(part)
    return value

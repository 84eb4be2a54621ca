"""Plain scalars that PyYAML, a YAML 1.1 reader, reads otherwise than they look."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import msgspec

from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_scalars import TIMESTAMP, plain_value

Looks = Literal["word", "number", "time", "date"]

_SUSPECT = re.compile(r"[-+]?\.?[0-9]|yes|no|on|off|[-+]?(?:inf|nan)", re.ASCII | re.IGNORECASE)
"""The beginning of every misread scalar; most text has another."""

_FINITE = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:e[-+]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_RADIX = re.compile(r"[-+]?0o[0-7_]+", re.ASCII)
_INFINITE = re.compile(r"([-+]?)(inf|nan)", re.ASCII | re.IGNORECASE)


MAX_DIGITS = 30
"""Maximum number of digits of an integer to write out."""


class Misreading(msgspec.Struct, frozen=True):
    """A misread plain scalar: what it looks like, what the reader takes it for, and how a number should be written."""

    looks: Looks
    read: str
    number: str | None = None

    @property
    def integer(self) -> str | None:
        """The number without point and exponent; None if it is not an integer, or a very large one."""
        if self.number is None or self.number.endswith((".inf", ".nan")):
            return None
        value = Decimal(self.number)
        whole = abs(value.adjusted()) <= MAX_DIGITS and value == value.to_integral_value()
        return str(int(value)) if whole else None


def misreading(node: Node) -> Misreading | None:
    """Return the misreading of a scalar; None for one that is quoted, tagged or read as it looks."""
    if node.kind != "scalar" or node.style or node.tag:
        return None
    return misread_text(node.value)


@lru_cache(maxsize=8192)
def misread_text(text: str) -> Misreading | None:
    """The misreading of a plain scalar of this text."""
    if not _SUSPECT.match(text) or len(text) > 100:
        return None
    if TIMESTAMP.fullmatch(text):
        return Misreading("date", "a date")
    value = plain_value(text)
    if isinstance(value, bool):
        return Misreading("word", f"the boolean `{str(value).lower()}`")
    if isinstance(value, str):
        number = _number(text)
        return None if number is None else Misreading("number", "text", number)
    if ":" in text:
        return Misreading("time", f"the number {value}")
    if isinstance(value, int) and re.fullmatch(r"[-+]?0[0-7_]+", text, re.ASCII) and value != _decimal(text):
        return Misreading("number", f"the octal number for {value}", str(_decimal(text)))
    return None


def _decimal(text: str) -> int:
    return int(text.replace("_", ""), 10)


def _number(text: str) -> str | None:
    """The spelling for the reader of the number that ``text`` looks like; None if it looks like none."""
    infinite = _INFINITE.fullmatch(text)
    if infinite is not None:
        return f".{infinite[2].lower()}" if infinite[2].lower() == "nan" else f"{infinite[1]}.inf"
    if _RADIX.fullmatch(text):
        return str(int(text.replace("0o", "").replace("_", ""), 8))
    if not _FINITE.fullmatch(text):
        return None
    mantissa, _, exponent = text.lower().partition("e")
    if not exponent:
        return _plain_number(mantissa)
    mantissa = re.sub(r"^([-+]?)\.", r"\g<1>0.", mantissa) if "." in mantissa else mantissa + ".0"
    return f"{mantissa}e{exponent if exponent[0] in '-+' else '+' + exponent}"


def _plain_number(text: str) -> str:
    """``08`` as 8, ``-.5`` as -0.5."""
    return re.sub(r"^([-+]?)\.", r"\g<1>0.", text) if "." in text else str(_decimal(text))

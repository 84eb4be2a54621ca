"""Defaults and alias annotations of a schema by the values that torch compares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from opschema_cli.schema.operator_schema import AliasInfo, Argument, Return, SchemaType
from opschema_cli.schema.schema_defaults import BASE_TYPES
from opschema_cli.schema.schema_tokens import Tokens

Constant: TypeAlias = tuple[str, object]
"""The kind of a value and the value: torch does not take ``1`` for ``1.0`` or ``True``."""

_DTYPES = (
    *("uint8", "int8", "int16 short", "int32 int", "int64 long", "float16 half", "float32 float", "float64 double"),
    *(
        "complex32 chalf",
        "complex64 cfloat complex",
        "complex128 cdouble",
        "bool",
        "qint8",
        "quint8",
        "qint32",
        "bfloat16",
    ),
    *("quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn"),
    *(
        "float8_e5m2fnuz",
        "float8_e4m3fnuz",
        "uint16",
        "uint32",
        "uint64",
        "uint1 bit",
        *(f"uint{n}" for n in range(2, 8)),
    ),
    *(*(f"int{n}" for n in range(1, 8)), "float8_e8m0fnu", "float4_e2m1fn_x2"),
)
"""The names of the dtypes in the order of their numbers (c10/core/ScalarType.h)."""

_WORDS = {
    **{name: number for number, names in enumerate(_DTYPES) for name in names.split()},
    "strided": 0,
    "contiguous_format": 0,
    "Mean": 1,
}
"""Words in the place of numbers (``parseSingleConstant`` in function_schema_parser.cpp)."""

_INTEGER = re.compile(r"-?\d+")


def default_value(of: Argument) -> Constant | None:
    """Return the default that torch stores, or None for an argument without one."""
    if of.default is None:
        return None
    if of.type.is_list and of.type.inner is not None:
        return _list(of.type, of.default)
    return _constant(of.type.name, of.default)


def is_container(value: Constant | None) -> bool:
    """Whether a default is a list."""
    return value is not None and value[0] == "list"


def _list(of: SchemaType, text: str) -> Constant:
    base = of.inner.name if of.inner is not None else ""
    if not text.startswith("["):
        return "list", (_constant(base, text),) * (of.size or 1)  # `int[2] x=1`
    words = [word for word in _joined(Tokens(text[1:-1]).words) if word != ","]
    return "list", tuple(_constant(base, word) for word in words)


def _joined(words: list[str]) -> Iterator[str]:
    """The words, with a sign before its number."""
    sign = ""
    for word in words:
        if word == "-":
            sign = word
        elif word:
            yield sign + word
            sign = ""


def _constant(base: str, text: str) -> Constant:
    """A single value as torch reads it for the type of that name; empty for an optional."""
    text = text.replace(" ", "") if text.startswith("-") else text
    if text in ("True", "False"):
        return "bool", text == "True"
    if text == "None":
        return "None", None
    if text[0] in "\"'":
        return "Device" if base == "Device" else "str", _string(text)
    if text[0].isalpha() or text[0] == "_":
        return "int", str(_WORDS.get(text, text))
    return _number(BASE_TYPES.get(base, "") and base, text)


def _string(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


def _number(base: str, text: str) -> Constant:
    """Parse a number like torch, which looks for the letters ``j``, ``.`` and ``e`` and ignores an invalid rest."""
    if base == "complex" or "j" in text:
        return "complex", _double(text[:-1])
    if base == "float" or "." in text or "e" in text:
        return "float", _double(text)
    digits = _INTEGER.match(text)
    return "int", digits[0].lstrip("0") or "0" if digits is not None else text


def _double(text: str) -> object:
    try:
        return float.fromhex(text) if "x" in text.lower() else float(text)
    except (OverflowError, ValueError):
        return text


# -- alias annotations -------------------------------------------------------------------------------------------------

Alias: TypeAlias = "tuple[bool, frozenset[str], frozenset[str], tuple[Alias, ...]]"
"""Whether the value is written, the alias sets before and after, and the annotations of its contents."""


def alias_values(slots: tuple[Argument | Return, ...]) -> list[Alias | None]:
    """The annotations of the arguments and returns of one schema: ``Tensor!`` gets the next number as its set."""
    numbers = count()
    return [_alias(slot.type, numbers) for slot in slots]


def _alias(of: SchemaType, numbers: Iterator[int]) -> Alias | None:
    inner = _alias(of.inner, numbers) if of.inner is not None else None
    own = _sets(of.alias, numbers)
    if of.optional or inner is None:
        return own or inner
    write, before, after, _ = own or (inner[0], frozenset[str](), frozenset[str](), ())
    return write, before, after, (inner,)


def _sets(alias: AliasInfo | None, numbers: Iterator[int]) -> Alias | None:
    if alias is None:
        return None
    before = frozenset(alias.before or (f"${next(numbers)}",))
    return alias.write, before, frozenset(alias.after) or before, ()

"""The types of schema strings, and which default each takes.

torch reads a default by the kind of its argument's type and stores what is written, value of the type or not
(``parseDefaultValue`` in torch/csrc/jit/frontend/function_schema_parser.cpp); both answers are given here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from opschema_cli.schema.operator_schema import SchemaType
from opschema_cli.schema.schema_tokens import Fault
from opschema_cli.source.text import Span
from opschema_cli.suggestions import near_names

_BY_KIND = {
    "int": "int SymInt ScalarType Layout MemoryFormat DeviceIndex ConstQuantizerPtr",
    "none": "Tensor Generator Quantizer",
    "single": "float complex bool str Scalar Device",
    "": "SymBool Storage QScheme Stream None NoneType Capsule Any AnyClassType AnyEnumType",
}
BASE_TYPES: Final = {
    name: name if kind == "single" else kind for kind, names in _BY_KIND.items() for name in names.split()
}
"""The types that the dispatcher knows by name, and how it reads a default of each; empty where it takes none."""

COMPOSED = {"Future": 1, "RRef": 1, "Await": 1, "Dict": 2, "Union": 0}
"""Types with types in parentheses, and how many; 0 for any number from one on."""

REMOVED = {"Dimname": "named tensors"}
"""Types that PyTorch has removed, and their purpose."""

TORCHGEN_TYPES = frozenset(BASE_TYPES).difference(
    ("ConstQuantizerPtr", "Quantizer", "complex", "None", "NoneType", "Capsule", "Any", "AnyClassType", "AnyEnumType")
)
"""The types that ``torchgen.model.BaseTy`` has too."""

VALUES = frozenset(name for name, kind in BASE_TYPES.items() if kind not in ("", "none")) | {"SymBool"}
"""Types whose values have no storage: nothing can write them."""

DICT_KEYS = VALUES - {"SymBool", "Scalar"} | {"Tensor", "Any"}
"""Types that a ``Dict`` takes for its keys."""

SPELLINGS = {
    **dict.fromkeys(("double", "Float", "float32", "float64", "c10_double"), ("float",)),
    **dict.fromkeys(
        ("int64_t", "int32_t", "long", "size_t", "int64", "int32", "Int", "Long", "integer"), ("SymInt", "int")
    ),
    **dict.fromkeys(("string", "String", "std_string"), ("str",)),
    **dict.fromkeys(("boolean", "Bool"), ("bool",)),
    **dict.fromkeys(("dtype", "Dtype", "DType"), ("ScalarType",)),
    **dict.fromkeys(("number", "Number"), ("Scalar",)),
}
"""Names of these types in other languages and elsewhere in PyTorch. A name with a single meaning is certain."""

PYTHON_GENERICS = {"Optional": "?", **dict.fromkeys(("List", "list", "Sequence"), "[]")}
"""``Optional[T]`` and other generics of Python, and the suffix that a schema writes after ``T``."""

_LOWER = {name.lower(): name for name in (*BASE_TYPES, *COMPOSED) if name not in ("None", "NoneType")}


def meant_types(name: str) -> tuple[tuple[str, ...], bool]:
    """The types that an unknown ``name`` may mean, and whether that is certain."""
    if name in SPELLINGS:
        return SPELLINGS[name], len(SPELLINGS[name]) == 1
    if name.lower() in _LOWER:
        return (_LOWER[name.lower()],), True
    near = near_names(name[:40], (*BASE_TYPES, *COMPOSED), 3, 0.7)
    return tuple(near), False


class Constant(msgspec.Struct, frozen=True):
    """One constant of a default: its sort (``None``, ``bool``, ``str``, ``word``, ``number``), its text, its place."""

    sort: str
    text: str
    span: Span


class Default(msgspec.Struct, frozen=True):
    """A default as written. For a list, ``items`` are the elements in its brackets."""

    items: tuple[Constant, ...]
    is_list: bool
    text: str


class Mismatch(msgspec.Struct, frozen=True):
    """The reason why a default does not fit its type, because of a ``word`` in it or entirely. ``meant`` is the intended text if
    it is certain.
    """

    kind: Fault
    message: str
    refused: bool = True
    word: Constant | None = None
    meant: str | None = None


_DTYPES = re.compile(
    r"bool|byte|char|short|int|long|half|float|double|chalf|cfloat|cdouble|bfloat16|bcomplex32|float4_e2m1fn_x2|bit"
    r"|u?int(?:[1-8]|16|32|64)|float(?:16|32|64)|complex(?:32|64|128)|qint(?:8|32)|quint(?:8|2x4|4x2)"
    r"|bits(?:8|16|1x8|2x4|4x2)|float8_e(?:4m3fn|4m3fnuz|5m2|5m2fnuz|8m0fnu)"
)
_WORDS = frozenset(("float", "complex", "long", "strided", "Mean", "contiguous_format"))
_MEANT = {"true": "True", "false": "False", **dict.fromkeys(("none", "null", "nullptr", "nullopt"), "None")}
_SORTS = {"True": "bool", "False": "bool", "None": "None"}
_WORD_TYPES = {"strided": "Layout", "contiguous_format": "MemoryFormat", "Mean": "int"}
_NUMBER_START = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(r"-?0[xX][\da-dfA-F]{1,16}")
"""Without an ``e``: with one, torch reads it as a floating-point number, and entirely."""
_ZERO = re.compile(r"-?0[xX]0+")
_INTEGER = re.compile(r"-?\d+")
_DEVICE = re.compile(r"[A-Za-z_]+(?::(?:0|[1-9]\d*))?")
_ESCAPE = re.compile(r"\\(?:[\\'\"\nabfnvt]|[0-3][0-7]{2})")
_LIST_KINDS = frozenset(("int", "float", "complex", "bool"))
_MAX_INT = 2**63


def misfits(of: SchemaType, default: Default) -> list[Mismatch]:
    """Return the reasons why ``default`` is not valid for an argument of type ``of``, or nothing if it is valid."""
    found = [mismatch for item in default.items if (mismatch := _unreadable(of, item)) is not None]
    if found:
        return found
    refusal = _of_list(of, default) if of.is_list else _of_single(of, default)
    if refusal is not None:
        return [refusal]
    found = list(_read_as_zero(of, default))
    if not found and not _fits(of, default):
        found = [Mismatch("default-type", f"`{default.text}` is not a value of type `{of}`", refused=False)]
    return found


def _read_as_zero(of: SchemaType, default: Default) -> Iterator[Mismatch]:
    """Hexadecimal integers: torch calls ``strtoll`` with base 10, which reads only the zero before the ``x``."""
    while of.inner is not None:
        of = of.inner
    for item in default.items if of.name in ("int", "SymInt") else ():
        value = int(item.text, 16) if _HEXADECIMAL.fullmatch(item.text) else 0
        if value:
            message = f"torch reads `{item.text}` as 0, since integers in a schema are decimal; write `{value}`"
            yield Mismatch("default-type", message, False, item)


def _unreadable(of: SchemaType, item: Constant) -> Mismatch | None:
    """The reason why a constant cannot be read in a default of this type, whatever the value."""
    if item.sort == "word" and item.text not in _WORDS and not (_is_dtype(of) and _DTYPES.fullmatch(item.text)):
        meant = _meant(of, item)
        advice = f"write `{meant}`" if meant else "a word can only be a dtype, a layout or a memory format"
        return Mismatch("default", f"`{item.text}` is not a value of type `{of}`; {advice}", True, item, meant)
    if item.sort == "str" and "\\" in _ESCAPE.sub("", item.text):
        return Mismatch(
            "default", f"torch does not read all escapes in {item.text}; it supports those of C", True, item
        )
    return None


def _meant(of: SchemaType, item: Constant) -> str | None:
    """The probable meaning of a word that torch does not know."""
    if of.name in ("str", "Device"):
        return f'"{item.text}"'
    meant = _MEANT.get(item.text, "")
    value = Constant(_SORTS.get(meant, "word"), meant, item.span)
    element = of.inner if of.is_list and of.inner is not None else of
    return meant if meant and _fits(element, Default((value,), False, meant)) else None


def _is_dtype(of: SchemaType) -> bool:
    """Whether the words for dtypes are read for it."""
    if of.is_list and of.inner is not None:
        return _is_dtype(of.inner)
    while of.optional and of.inner is not None:
        of = of.inner
    return of.name == "ScalarType"


def _kind(of: SchemaType) -> str:
    """The kind of default that torch reads for this type; empty where it takes none."""
    if of.optional:
        return "optional"
    return "" if of.inner is not None or of.items else BASE_TYPES.get(of.name, "")


def _of_single(of: SchemaType, default: Default) -> Mismatch | None:
    kind, advice = _kind(of), ""
    if not kind:
        return Mismatch("default", f"an argument of type `{of}` takes no default")
    if default.is_list:
        if kind == "optional":
            advice = "; its default can only be `None`"
        return Mismatch("default", f"`{default.text}` is a list, and `{of}` takes a single default{advice}")
    (item,) = default.items
    if kind == "none":
        return None if item.sort == "None" else Mismatch("default", f"the default of a `{of}` can only be `None`")
    if kind == "Device":
        good = item.sort == "str" and _DEVICE.fullmatch(item.text.strip("\"'")) is not None
        return (
            None if good else Mismatch("default", 'the default of a `Device` is a string such as `"cpu"` or `"cuda:0"`')
        )
    return _range(kind, item) if item.sort == "number" else None


def _range(kind: str, item: Constant) -> Mismatch | None:
    """The reason why torch cannot read a number."""
    text = item.text
    if kind == "complex" or "j" in text:
        good = _NUMBER_START.match(text[:-1]) is not None
    elif kind == "float" or "." in text or "e" in text:
        good = _is_double(text)
    else:
        good = -_MAX_INT <= _as_int(text) < _MAX_INT
    return None if good else Mismatch("default", f"torch cannot read `{text}` as a number of type `{kind}`")


def _as_int(text: str) -> int:
    """The number that C's ``strtoll`` reads: the digits at the start; those of a huge number are not needed."""
    digits = re.match(r"(-?)(\d+)", text)
    return int(digits[1] + digits[2].lstrip("0")[:25].rjust(1, "0")) if digits else _MAX_INT


def _is_double(text: str) -> bool:
    """Whether C's ``strtod`` reads a number without overflow or underflow."""
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except (OverflowError, ValueError):
        return False
    zero = not re.search("[1-9]", re.split("[eE]", text)[0])
    return math.isfinite(value) and (abs(value) >= 2.2250738585072014e-308 or zero)


def _of_list(of: SchemaType, default: Default) -> Mismatch | None:
    element = of.inner
    if element is None:
        return None
    if not default.is_list and (of.size is None or default.items[0].sort == "word"):
        advice = f"; `{of}?` takes `None`" if default.items[0].sort == "None" else ""
        return Mismatch("default", f"`{default.text}` is not a list, and the argument is one: `{of}`{advice}")
    kind = _kind(element)
    if kind not in _LIST_KINDS:
        return Mismatch("default", f"torch takes no default for a list of `{element}`; make it `{of}?` with `None`")
    for item in default.items if default.is_list or of.size else ():
        found = _range(kind, item) if item.sort == "number" else None
        if found is not None:
            return found
        if not _is_element(kind, item):
            return Mismatch("default", f"`{item.text}` is not an element of `{of}`")
    return None


def _is_element(kind: str, item: Constant) -> bool:
    if item.sort == "number":
        imaginary, fraction = "j" in item.text, "." in item.text or "e" in item.text
        return {"int": not imaginary and not fraction, "float": not imaginary, "complex": True}.get(kind, False)
    return item.sort == {"int": "word", "bool": "bool"}.get(kind)


def _fits(of: SchemaType, default: Default) -> bool:
    """Whether a default that torch reads is a value of the type."""
    if of.optional and of.inner is not None:
        if not default.is_list and default.items[0].sort == "None":
            return True
        if of.inner.is_list:
            return False
        return _fits(of.inner, default)
    if of.is_list:
        return True
    (item,) = default.items
    if item.sort == "number":
        return _number_fits(of.name, item.text)
    if item.sort == "word":
        return _WORD_TYPES.get(item.text, "ScalarType") == of.name
    expected = {"str": ("str", "Device"), "bool": ("bool", "Scalar"), "None": ("Tensor", "Generator", "Quantizer")}
    return of.name in expected[item.sort]


def _number_fits(name: str, text: str) -> bool:
    if "j" in text:
        return name in ("complex", "Scalar")
    if "." in text or "e" in text:
        return name in ("float", "Scalar")
    if name == "float":
        return True
    integer = _INTEGER.fullmatch(text) or _ZERO.fullmatch(text)
    return BASE_TYPES.get(name) in ("int", "Scalar") and integer is not None

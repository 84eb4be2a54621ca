"""The values that pybind11, nanobind and torch convert to a C++ type, to the extent that literals show them.

Sources: pybind11 ``cast.h`` and ``stl.h``, torch ``torch/csrc/utils/pybind.h``, nanobind's documentation of type casters. What is
not listed may be accepted.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.schema.cpp_inference import plain_type, split_arguments
from opschema_cli.source.python import Expr

ValueKind: TypeAlias = Literal["None", "bool", "int", "float", "str", "list", "tuple", "dict"]


class Literally(msgspec.Struct, frozen=True):
    """A literal: its kind, its items where they are known, and its text."""

    kind: ValueKind
    text: str
    items: tuple[Literally | None, ...] | None = None


_INTEGER = re.compile(r"u?int(?:8|16|32|64)?_t|int|short|long long|size_t|unsigned(?: int)?|int64_t")
_GENERIC = re.compile(r"(\w+)<(.*)>")
_LISTS = frozenset({"vector", "ArrayRef", "array", "List"})
_NUMBERS: tuple[ValueKind, ...] = ("bool", "int", "float")
_SEQUENCES: tuple[ValueKind, ...] = ("list", "tuple")
_REFUSED: dict[str, tuple[ValueKind, ...]] = {
    "integer": ("None", "float", "str", *_SEQUENCES, "dict"),
    "float": ("None", "str", *_SEQUENCES, "dict"),
    "bool": ("str", *_SEQUENCES, "dict"),
    "string": ("None", *_NUMBERS, *_SEQUENCES, "dict"),
    "Tensor": ("None", "str", *_NUMBERS, *_SEQUENCES, "dict"),
    "ScalarType": ("None", "str", *_NUMBERS, *_SEQUENCES, "dict"),
    "sequence": ("None", "str", *_NUMBERS),
}


def refuses(written: str, value: Literally) -> bool:
    """Whether a literal is certainly refused for a parameter of a C++ type."""
    found = plain_type(written)
    return found is not None and _refuses(found, value)


def _refuses(name: str, value: Literally) -> bool:
    generic = _GENERIC.fullmatch(name)
    if generic is None:
        return value.kind in _REFUSED.get(_group(name), ())
    inner = split_arguments(generic[2])
    if generic[1] == "optional":
        return value.kind != "None" and _refuses(inner[0], value)
    if generic[1] in ("array", "tuple", "pair") and value.kind == "str":  # pybind11 takes it for a sequence of strings
        return any(_refuses(item, value) for item in inner)
    if generic[1] in _LISTS:
        items = value.items or ()
        return value.kind in _REFUSED["sequence"] or any(
            item is not None and _refuses(inner[0], item) for item in items
        )
    return generic[1] in ("tuple", "pair") and _tuple_refuses(inner, value)


def _tuple_refuses(inner: list[str], value: Literally) -> bool:
    """Whether a literal is certainly refused for a tuple of some types."""
    if value.kind in _REFUSED["sequence"]:
        return True
    if value.kind not in _SEQUENCES or value.items is None:
        return False
    pairs = zip(inner, value.items, strict=False)
    return len(inner) != len(value.items) or any(item is not None and _refuses(one, item) for one, item in pairs)


def _group(name: str) -> str:
    if _INTEGER.fullmatch(name):
        return "integer"
    return {"double": "float", "string_view": "string"}.get(name, name)


def of_python(expr: Expr, text: str) -> Literally | None:
    """Return the literal that a Python expression is, or None if it is not a literal."""
    if expr.kind == "const":
        value = expr.value
        if value is None or isinstance(value, bool | int | float | str):
            name = "None" if value is None else type(value).__name__
            return Literally(name, text)  # type: ignore[arg-type]
        return None
    if expr.kind == "unary" and text[:1] in "-+" and len(expr.items) == 1:
        inner = of_python(expr.items[0], text)
        return inner if inner is not None and inner.kind in ("int", "float") else None
    if expr.kind in ("list", "tuple"):
        elements = expr.elements
        items = tuple(of_python(item, "") for item in elements) if elements is not None else None
        return Literally("list" if expr.kind == "list" else "tuple", text, items)
    return Literally("dict", text) if expr.kind == "dict" else None


_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F']+|\d[\d']*)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])")
_FLOAT = re.compile(r"[-+]?(?:\d[\d']*\.\d*|\.\d+|\d[\d']*(?=[eE]))(?:[eE][-+]?\d+)?[fFlL]?")
_NONE = re.compile(r"(?:::)?(?:(?:py|pybind11|nb|nanobind)::none\(\)|(?:(?:std|c10|at)::)?nullopt)")
_STRING = re.compile(r'(?:std::string\(|std::string\{)?"(?:[^"\\]|\\.)*"[)}]?s?')
_MADE = re.compile(r"std::(?:make_(?:tuple|pair)|(?:tuple|pair)<[^()]*>)\s*[({](.*)[)}]", re.DOTALL)


def of_cpp(written: str) -> Literally | None:
    """Return the literal that Python receives for a C++ default, or None if it is not a literal."""
    text = written.strip()
    while text.startswith("(") and text.endswith(")") and "(" not in text[1:]:
        text = text[1:-1].strip()
    if text in ("true", "false"):
        return Literally("bool", text)
    for pattern, kind in ((_NONE, "None"), (_INT, "int"), (_FLOAT, "float"), (_STRING, "str")):
        if pattern.fullmatch(text):
            return Literally(kind, text)  # type: ignore[arg-type]
    made = _MADE.fullmatch(text)
    if made is not None and "{" not in made[1] and "(" not in made[1]:
        return Literally("tuple", text, tuple(of_cpp(item) for item in made[1].split(",")))
    return None

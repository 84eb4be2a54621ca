"""Defaults of attributes, which are C++ expressions."""

from __future__ import annotations

import re

from opschema_cli.schema.cpp_literals import of_cpp

_PYTHON = {"True": "write `true`", "False": "write `false`", "None": "write a C++ value"}
_WHOLE = ("int", "int32_t", "int64_t", "long", "size_t")
_NUMBERS = (*_WHOLE, "bool", "float", "double")
_ENUM = re.compile(r"Data(?:Type|Layout)::")


def fault_of(type_: str, default: str) -> str:
    """Return the fault of a default for a type, as text; empty if it fits, or is an unknown expression."""
    kind = _kind(default)
    if default in _PYTHON:
        return f"is Python syntax; {_PYTHON[default]}"
    if default.startswith("'"):
        fits = type_ in _NUMBERS and re.fullmatch(r"'(?:[^'\\]|\\.)'", default)
        return "" if fits else "is not a C++ string; write it in double quotes"
    if type_.endswith("[]") or type_ == "IntArray":
        return _of_list(type_.removesuffix("[]"), default, kind)
    if default.startswith("{") and default != "{}":
        return "is a list, but the type is not"
    if type_ in _NUMBERS:
        return _of_number(type_, default, kind)
    if type_ == "str":
        word = kind in ("int", "float") or (re.fullmatch(r"[^\Wk]\w*", default) is not None)
        return "is not a string; write it in double quotes" if word else ""
    if type_ in ("DataType", "DataLayout"):
        return f"is not a `{type_}`; write `{type_}::...`" if type_ not in default and default != "{}" else ""
    if type_ == "Place":
        return "is not a `Place`" if kind in ("int", "str") else ""
    return "is not a number" if type_.startswith("Scalar") and _ENUM.match(default) else ""


def _kind(text: str) -> str:
    literal = of_cpp(text)
    return literal.kind if literal is not None else ""


def _of_number(type_: str, default: str, kind: str) -> str:
    if kind == "str" or _ENUM.match(default):
        return "is not a number"
    if type_ == "bool" and kind == "float":
        return "is not a `bool`"
    number = float(default.strip("() ").replace("'", "").rstrip("fFlL")) if type_ in _WHOLE and kind == "float" else 0
    return f"is truncated to {int(number)}" if number % 1 else ""


def _of_list(item: str, default: str, kind: str) -> str:
    if not default.startswith("{"):
        return "is not a list; write it in braces" if kind in ("int", "float", "str") else ""
    if not default.endswith("}"):
        return "has no closing brace"
    kinds = {_kind(part) for part in default[1:-1].split(",")}
    if item == "str":
        return "contains items that are not strings" if "int" in kinds else ""
    if "str" in kinds:
        return "contains items that are not numbers"
    return "contains items that are not integers" if "float" in kinds and item in (*_WHOLE, "IntArray") else ""

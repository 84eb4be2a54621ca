"""Defaults of attributes, which are C++ expressions."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[-+]?(?:\d+|0[xX][\da-fA-F]+)[uUlL]*")
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?[fFlL]?")
_STRING = re.compile(r'(?:std::string\()?"(?:[^"\\]|\\.)*"\)?')
_CHARACTER = re.compile(r"'(?:[^'\\]|\\.)'")
_PYTHON = {
    "True": "write `true`",
    "False": "write `false`",
    "None": "write a C++ value",
}
_NUMBERS = ("bool", "int", "int32_t", "int64_t", "long", "size_t", "float", "double")
_WHOLE = ("int", "int32_t", "int64_t", "long", "size_t")


def fault_of(type_: str, default: str) -> str:
    """The fault of a default for a type, in words; empty if it fits, or is an expression that is not known."""
    if default in _PYTHON:
        return f"is Python syntax; {_PYTHON[default]}"
    if _CHARACTER.fullmatch(default) and type_ in _NUMBERS:
        return ""
    if default.startswith("'"):
        return "is not a C++ string; write it in double quotes"
    if type_.endswith("[]") or type_ == "IntArray":
        return _of_list(type_.removesuffix("[]"), default)
    if default.startswith("{") and default != "{}":
        return "is a list, but the type is not"
    if type_ in _NUMBERS:
        return _of_number(type_, default)
    if type_ == "str":
        known = _INTEGER.fullmatch(default) or _FLOAT.fullmatch(default) or re.fullmatch(r"\w+", default)
        return "is not a string; write it in double quotes" if known and not default.startswith("k") else ""
    if type_ in ("DataType", "DataLayout"):
        return f"is not a `{type_}`; write `{type_}::...`" if type_ not in default and default != "{}" else ""
    if type_ == "Place":
        return "is not a `Place`" if _INTEGER.fullmatch(default) or _STRING.fullmatch(default) else ""
    return "is not a number" if type_.startswith("Scalar") and re.match(r"Data(?:Type|Layout)::", default) else ""


def _of_number(type_: str, default: str) -> str:
    if _STRING.fullmatch(default) or re.match(r"Data(?:Type|Layout)::", default):
        return "is not a number"
    if type_ == "bool" and _FLOAT.fullmatch(default):
        return "is not a `bool`"
    if type_ in _WHOLE and _FLOAT.fullmatch(default) and float(default.rstrip("fFlL")) % 1:
        return f"is truncated to {int(float(default.rstrip('fFlL')))}"
    return ""


def _of_list(item: str, default: str) -> str:
    if not default.startswith("{"):
        known = (_INTEGER, _FLOAT, _STRING)
        return "is not a list; write it in braces" if any(one.fullmatch(default) for one in known) else ""
    if not default.endswith("}"):
        return "has no closing brace"
    items = [part.strip() for part in default[1:-1].split(",")] if default[1:-1].strip() else []
    if item == "str":
        return "contains items that are not strings" if any(map(_INTEGER.fullmatch, items)) else ""
    if any(_STRING.fullmatch(part) for part in items):
        return "contains items that are not numbers"
    whole = item in _WHOLE or item == "IntArray"
    return "contains items that are not integers" if whole and any(map(_FLOAT.fullmatch, items)) else ""

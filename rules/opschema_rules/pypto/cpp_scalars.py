"""The types of the scalars that an orchestration adds to payloads, by their expressions."""

from __future__ import annotations

import re

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto.cpp_numbers import is_zero, number_of
from opschema_rules.pypto.cpp_state import Scope
from opschema_rules.pypto.cpp_values import Bits, Number, Value
from opschema_rules.pypto.cpp_walk import Walk

FLOATS = frozenset({"float", "double"})
SMALLEST = 1 << 23
"""The smallest integer whose bits are a normal single-precision number; smaller ones are never meant as one."""

_REAL = re.compile(r"-?(?:\d[\d']*\.[\d']*|\.\d[\d']*|\d[\d']*(?=[eE]))(?:[eE][-+]?\d+)?([fFlL]?)")
_CAST = re.compile(r"(?:(?:from_u64|static_cast)\s*<\s*(float|double)\s*>\s*\(|\(\s*(float|double)\s*\)\s*[\w(])")
_KEEPS = re.compile(r"[\w.()\[\]\s]*|\(?\s*(?:static_cast\s*<\s*)?u?int(?:32|64)_t\s*[>)]\s*[\w.()\[\]\s]*")


def type_of_scalar(node: CppNode, value: Value, scope: Scope, walk: Walk) -> str:
    """Return ``float``, ``double``, ``integer`` for a small nonzero one, ``scalar 2`` for the orchestration's own unchanged
    scalar, or an empty string. Zero has the same bits in each type.
    """
    text = node.text
    if node.tree.directives.conditions(node.span.start) or (isinstance(value, Number) and not value.value):
        return ""
    real = _REAL.fullmatch(text)
    if real is not None:
        return (
            "" if not re.search(r"[1-9]", re.split("[eE]", text)[0]) else "float" if real[1] in ("f", "F") else "double"
        )
    if isinstance(value, Bits):
        return f"scalar {value.index}" if _KEEPS.fullmatch(text) else ""
    if node.kind == "identifier":
        number = scope.find(text)
        if number is not None:
            return walk.checks.floats.get(number, "")
        return _of_integer(walk.parts.constants.get(text))
    cast = _CAST.match(text) if node.kind in ("call_expression", "cast_expression") else None
    if cast is not None:
        return "" if is_zero(text[cast.end() - 1 :]) else cast[1] or cast[2]
    return _of_integer(number_of(text)) if node.kind == "number_literal" else ""


def _of_integer(number: int | None) -> str:
    return "integer" if number is not None and 0 < number < SMALLEST else ""

"""Types of numbers as blocks of the GPU carry them, and in words."""

from __future__ import annotations

import re

from opschema_rules.flydsl.number_types import FLOAT, INT

_FAMILIES = {"Int": "i", "Uint": "i", "Float": "f", "BFloat": "bf"}
_SIZED = re.compile(r"(Int|Uint|B?Float)(\d+)")


def machine_type(kind: str) -> str:
    """The type that a block carries a number as; empty for one that is not known."""
    found = _SIZED.fullmatch({INT: "Int32", FLOAT: "Float32", "Boolean": "Int1"}.get(kind, kind))
    return f"{_FAMILIES[found[1]]}{found[2]}" if found else ""


def is_float(kind: str) -> bool:
    """Whether a type is one of floats."""
    return kind == FLOAT or "Float" in kind


def written(kind: str) -> str:
    """A type in words."""
    return {INT: "an `int`", FLOAT: "a `float`"}.get(kind, f"`fx.{kind}`")

"""Types of numbers as GPU blocks carry them, and their names in messages."""

from __future__ import annotations

import re

from opschema_rules.flydsl.number_types import FLOAT, INT

_FAMILIES = {"Int": "i", "Uint": "i", "Float": "f", "BFloat": "bf"}
_SIZED = re.compile(r"(Int|Uint|B?Float)(\d+)")


def machine_type(kind: str) -> str:
    """Return the type that a block uses to carry a number; empty if it is not known."""
    found = _SIZED.fullmatch({INT: "Int32", FLOAT: "Float32", "Boolean": "Int1"}.get(kind, kind))
    return f"{_FAMILIES[found[1]]}{found[2]}" if found else ""


def is_float(kind: str) -> bool:
    """Whether a type is a float type."""
    return kind == FLOAT or "Float" in kind


def written(kind: str) -> str:
    """Return a type's name for a message."""
    return {INT: "an `int`", FLOAT: "a `float`"}.get(kind, f"`fx.{kind}`")

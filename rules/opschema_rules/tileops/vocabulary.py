"""Functions that a tree's shape rules and formulas may call, and the probable meaning of other names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opschema_cli.suggestions import nearest
from opschema_rules.tileops.spec import Spec

SHAPE_HELPERS = frozenset(
    {
        *(
            "abs",
            "all",
            "any",
            "float",
            "int",
            "isinstance",
            "len",
            "list",
            "max",
            "min",
            "range",
            "set",
            "tuple",
            "type",
        ),
        *("broadcast_shapes", "is_broadcastable_to"),
        *("dim_range_validity", "dim_uniqueness", "reduced_axes", "reduced_shape"),
    }
)
"""Functions that every validator of a TileOPs-style tree lets shape rules call."""

ARITHMETIC_HELPERS = frozenset({"ceil", "floor", "log2"})
"""Functions that ``flops`` and ``bytes`` may call."""

VARS_HELPERS = ARITHMETIC_HELPERS | {
    *(
        "abs",
        "bool",
        "float",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "product",
        "range",
        "set",
        "sum",
        "tuple",
    )
}
"""Functions that ``roofline.vars`` may call: TileOPs' ``roofline.md`` §4.4.4."""


def states(spec: Spec, name: str) -> bool:
    """Whether the tree's specification quotes or defines ``name``, or a module beside its manifest defines it."""
    stated = rf"""def\s+_?{re.escape(name)}\s*\(|["'`]{re.escape(name)}["'`(]"""
    return name in spec.helpers or re.search(stated, spec.text) is not None


def closest(name: str, names: Iterable[str]) -> str:
    """A suggestion for a message, or nothing."""
    found = nearest(name, names, 0.75)
    return f"; is it `{found}`?" if found is not None else ""

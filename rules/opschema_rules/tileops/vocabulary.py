"""Which functions a tree's shape rules and formulas may call, and which name was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from opschema_rules.tileops.model import Manifest

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
"""What every validator of a TileOPs-style tree lets shape rules call."""

ARITHMETIC_HELPERS = frozenset({"ceil", "floor", "log2"})
"""What ``flops`` and ``bytes`` may call."""

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
"""What ``roofline.vars`` may call: TileOPs' ``roofline.md`` §4.4.4."""


def states(manifest: Manifest, name: str) -> bool:
    """Whether the tree's specification quotes or defines ``name``, or a module beside its manifest does."""
    stated = re.compile(rf"""def\s+_?{re.escape(name)}\s*\(|["'`]{re.escape(name)}["'`(]""")
    return any(stated.search(text) is not None for text in _texts(manifest))


def _texts(manifest: Manifest) -> Iterable[str]:
    yield manifest.spec.text
    for path in manifest.project.workspace.under(manifest.folder):
        source = manifest.project.source(path) if path.endswith(".py") else None
        if source is not None:
            yield source.text


def closest(name: str, names: Iterable[str]) -> str:
    """A suggestion for a message, or nothing."""
    found = difflib.get_close_matches(name, sorted(set(names) - {name}), n=1, cutoff=0.75)
    return f"; is it `{found[0]}`?" if found else ""

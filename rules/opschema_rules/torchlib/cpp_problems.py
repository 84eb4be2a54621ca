"""Calls of a C++ library that torch refuses, whatever function they register."""

from __future__ import annotations

import re

from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.torchlib.dispatch_keys import DISPATCH_KEYS

_MACRO = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*")


def key_problem(key: str) -> str:
    """Return the fault of a dispatch key for ``TORCH_LIBRARY_IMPL``; empty if there is none, or it may be a macro."""
    if key in DISPATCH_KEYS or not key.isidentifier() or _MACRO.fullmatch(key):
        return ""
    same = [item for item in DISPATCH_KEYS if item.lower() == key.lower()]
    near = same[0] if same else near_name(key, sorted(DISPATCH_KEYS), 0.75)
    return f"torch has no dispatch key `{key}`{did_you_mean(near)}"


def kind_problem() -> str:
    """The fault of a definition in a block of kernels."""
    return "`TORCH_LIBRARY_IMPL` defines no operators: torch refuses `def()` in it; write `TORCH_LIBRARY_FRAGMENT`"


def namespace_problem(namespace: str | None, name: str) -> str:
    """Return the fault of an operator's name in a block; empty if there is none."""
    own, colons, _ = name.partition("::")
    if namespace == "_" and not colons:
        return (
            f"this block is of all namespaces: `{name}` is no operator in it; write its namespace, as in `aten::{name}`"
        )
    if namespace in (None, "_") or not colons or own == namespace:
        return ""
    return f"this block is of the namespace `{namespace}`: torch refuses `{name}` in it"


def wildcard_problem(kind: str, namespace: str) -> str:
    """Return the fault of a block that defines operators for all namespaces; empty if there is none."""
    if namespace != "_" or kind == "IMPL":
        return ""
    return "`_` is no namespace for operators: torch refuses a library of it; write `TORCH_LIBRARY_IMPL`"


def fallback_problem(kind: str, namespace: str | None) -> str:
    """Return the fault of a fallback in a block; empty if there is none, or the block is unknown."""
    if kind and kind != "IMPL":
        return "a fallback is for a dispatch key: torch refuses it here; write `TORCH_LIBRARY_IMPL(_, KEY, m)`"
    if kind != "IMPL" or namespace in (None, "_"):
        return ""
    return f"torch refuses a fallback for the namespace `{namespace}` alone; write `TORCH_LIBRARY_IMPL(_, KEY, m)`"

"""The dispatch keys of C++ registrations, and the functions registered for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from opschema_rules.torchlib.cpp_facts import CppArgument
from opschema_rules.torchlib.model import Role

Keys: TypeAlias = "frozenset[str] | None"
"""Dispatch keys: empty for all, None when they are not known."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_KEY = r"(?:::)?(?:\w+::)*(?:DispatchKey|DeviceType)::(\w+)|(?:(?:torch|at|c10)::)?k([A-Z]\w*)"
_IS_KEY = re.compile(_KEY)
_DISPATCH = re.compile(rf"(?:(?:torch|c10|at)::)?dispatch\s*\(\s*(?:{_KEY}|[^,]*?)\s*,\s*([\s\S]*)\)")
_KERNEL = re.compile(r"DispatchKey::(\w+)")


def key_named(text: str | None) -> Keys:
    """Return the dispatch key of that name; ``TORCH_LIBRARY_IMPL`` takes its word unchanged."""
    return frozenset({text}) if text is not None and _WORD.fullmatch(text) else None


def functions_of(arguments: Sequence[CppArgument], keys: Keys) -> list[tuple[Keys, str]]:
    """Return the keys, by default ``keys``, and the function of ``m.impl``, as written."""
    first = arguments[0].text
    dispatched = _DISPATCH.fullmatch(first)
    if dispatched is not None:
        return [(key_named(dispatched[1] or dispatched[2]), dispatched[3])]
    found = _IS_KEY.fullmatch(first)
    if len(arguments) > 1:
        return [(key_named(found[1] or found[2]) if found is not None else None, arguments[1].text)]
    return [(keys, first)]


def options_of(arguments: Sequence[CppArgument]) -> list[tuple[Keys, str]]:
    """Return the keys and functions passed to ``RegisterOperators().op``."""
    text = arguments[0].text
    keys = _KERNEL.findall(text) if "options()" in text else []
    return [(frozenset({key}), text) for key in keys] or [(frozenset(), text)]


_ROLES: dict[str, Role] = {
    "Meta": "fake",
    "SparseMeta": "fake",
    "QuantizedMeta": "fake",
    "NestedTensorMeta": "fake",
    "FuncTorchBatched": "vmap",
    "Batched": "vmap",
    "Python": "torch_dispatch",
}
_PREFIXES: dict[str, Role] = {"Autograd": "autograd", "Autocast": "autocast"}
_OTHERS = ("ADInplaceOrView", "Functionalize", "FuncTorch", "BackendSelect", "Conjugate", "Negative", "Named", "Tracer")


_FALLTHROUGH = re.compile(
    r"\b(?:makeFallthrough|(?:basicA|a)utogradNotImplemented(?:InplaceOrView)?Fallback|makeNamedNotSupported)\s*\("
)
"""Functions of torch whose result is not a kernel of its own: it passes every call on, or rejects it."""


def role_of(keys: Keys, function: str) -> Role:
    """The role of a function, as written, that is registered for a dispatch key; ``other`` when the key is not known."""
    if _FALLTHROUGH.search(function):
        return "fallthrough"
    if keys is None:
        return "other"
    key = min(keys, default="")
    if key in _ROLES:
        return _ROLES[key]
    if key.startswith(_OTHERS):
        return "other"
    return next((role for prefix, role in _PREFIXES.items() if key.startswith(prefix)), "kernel")

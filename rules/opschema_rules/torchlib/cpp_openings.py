"""Macros that open a block of registrations: torch's own, and those of a project that expand to the same."""

from __future__ import annotations

import re

OPENS = re.compile(
    r"(?:STABLE_)?TORCH_LIBRARY(?P<impl>_IMPL)?(?:_FRAGMENT)?(?:_THIS_API_IS_FOR_PER_OP_REGISTRATION_ONLY)?"
)

BLOCK = re.compile(r"(?:\w*_)?TORCH_LIBRARY\w*")
"""Macros whose names show that they open a block."""

_OTHER = re.compile(r"(?m)^[ \t]*([A-Z][A-Z0-9_]*)[ \t]*\((?:[^(){};\n]*,)?[ \t]*(\w+)[ \t]*\)\s{0,99}\{")

_CALL = re.compile(r"\b(\w+)\s*\.\s*(?:impl|def|fallback)\s*\(")

_INITIALIZED = re.compile(
    r"TorchLibraryInit\b[^;]*?\bLibrary::(DEF|IMPL|FRAGMENT)\s*,[^;\"]*\"(\w+)\"\s*,(?:[^;\"]*?DispatchKey::(\w+))?"
)


def opened_by(text: str, receiver: str) -> tuple[str, tuple[str, ...]]:
    """The macro of torch that makes the same library as the ``TorchLibraryInit`` in a text, with its arguments; or nothing."""
    found = _INITIALIZED.findall(text)
    if len(found) != 1:
        return "", ()
    kind, namespace, key = found[0]
    if kind == "IMPL":
        return ("TORCH_LIBRARY_IMPL", (namespace, key, receiver)) if key else ("", ())
    return "TORCH_LIBRARY_FRAGMENT" if kind == "FRAGMENT" else "TORCH_LIBRARY", (namespace, receiver)


def other_openings(text: str) -> frozenset[int]:
    """Return the places of a project's macros before blocks that call a library; any of them may open a block of registrations."""
    receivers = set(_CALL.findall(text))
    return frozenset(
        found.start(1) for found in _OTHER.finditer(text) if found[2] in receivers and not BLOCK.fullmatch(found[1])
    )

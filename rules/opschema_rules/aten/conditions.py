"""Conditions and limits in torchgen's code: the depth of namespaces that it rejects, and the operators that need a tag.

They are read from the text of torchgen's modules, which is never run. What cannot be read so is None, and is then that of
a known release.
"""

from __future__ import annotations

import ast
import re

import msgspec

_SEEDED_TAG = "nondeterministic_seeded"


class Limits(msgspec.Struct, frozen=True):
    """The conditions of one torchgen.

    ``kernel_depth`` and ``backend_depth`` are the most namespaces of a kernel in a dispatch table, and of a backend's
    ``cpp_namespace``. ``backend_keys`` are the keys of a backend's YAML; ``takes_options`` says whether its lists may hold
    ``- mul.out: {...}``. ``draws`` is the Python expression by which it takes an operator for one that draws random
    numbers; empty where it asks for no tag.
    """

    kernel_depth: int | None = None
    backend_depth: int | None = None
    backend_keys: frozenset[str] | None = None
    takes_options: bool | None = None
    draws: str | None = None


_OF_KERNEL = re.compile(r"from_namespaced_entity\(\s*v,\s*max_level=(\d+)")
_OF_HELPER = re.compile(r"class NamespaceHelper\b.{0,4000}?def __init__\([^)]{0,400}?max_level: int = (\d+)", re.DOTALL)
_OF_BACKEND = re.compile(r"NamespaceHelper\(\s*(?:namespace_str=)?cpp_namespace\b[^()]{0,400}?max_level=(\d+)")
_OPTIONS = re.compile(r"isinstance\((?!yaml_values\b)\w+, \(?(?:dict|Mapping)\b")
_SAYING = ("cpp_namespace", "NamespaceHelper", "yaml_values")
_POPPED = re.compile(r"\byaml_values\.pop\(\s*[\"'](\w+)[\"']")


def read_model_limits(text: str) -> Limits:
    """Read the limits in ``torchgen/model.py``."""
    depth = _OF_KERNEL.search(text)
    return Limits(kernel_depth=int(depth[1]) if depth is not None else None, draws=_draws(text))


def read_backend_limits(text: str) -> Limits:
    """Read the limits in ``torchgen/gen_backend_stubs.py`` or ``torchgen/utils.py``."""
    if not any(word in text for word in _SAYING):
        return Limits()
    depth = _OF_BACKEND.search(text) or _OF_HELPER.search(text)
    keys = frozenset(_POPPED.findall(text))
    return Limits(
        backend_depth=int(depth[1]) if depth is not None else None,
        backend_keys=keys if "backend" in keys else None,
        takes_options=_OPTIONS.search(text) is not None if "backend" in keys else None,
    )


def joined(*found: Limits) -> Limits:
    """The first that each of several modules says."""
    values = {
        name: next((value for item in found if (value := getattr(item, name)) is not None), None)
        for name in Limits.__struct_fields__
    }
    return Limits(**values)


def _draws(text: str) -> str | None:
    """Return the test of the ``if`` whose body requires the tag ``nondeterministic_seeded``."""
    if _SEEDED_TAG not in text:
        return ""
    lines = text.splitlines()
    last = next(at for at, line in enumerate(lines) if _SEEDED_TAG in line)
    for first in range(last, max(last - _LONGEST, -1), -1):
        if lines[first].strip() == "if (":
            return _test("\n".join(lines[first : last + 1]))
    return None


_LONGEST = 60
"""Maximum number of lines of a condition, and of the code between it and the tag that it requires."""


def _test(text: str) -> str | None:
    """Return the test of the first ``if`` of a text, on one line; None if it cannot be parsed."""
    head = re.match(r" +if (\(.{1,4000}?\)):\n", text, re.DOTALL)
    try:
        return ast.unparse(ast.parse(head[1], mode="eval")) if head is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

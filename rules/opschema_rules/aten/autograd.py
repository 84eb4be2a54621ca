"""Tables of PyTorch's autograd generator about operators and formulas."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

_NAME = re.compile(r"[\"'](\w+)[\"']")
_PAIR = re.compile(r"\([\"'](\w+)[\"'],\s*[\"'](\w*)[\"']\)")


class Autograd(msgspec.Struct, frozen=True):
    """``never`` are operators that need no derivative (``gen_variable_type.DONT_REQUIRE_DERIVATIVE``), ``manual`` those with
    hand-written derivatives (``gen_trace_type.MANUAL_AUTOGRAD``). ``takes_sizes`` if formulas may contain ``.sizes()``, as
    before SymInts. ``foreach`` are the in-place operators over lists, by name and overload, that need no derivative for their
    use (``gen_variable_type._foreach_ops_without_differentiability_info``), if it ``maps_foreach`` and others need one. None if
    that is not known.
    """

    never: frozenset[str] | None = None
    manual: frozenset[str] | None = None
    takes_sizes: bool | None = None
    foreach: frozenset[tuple[str, str]] = frozenset()
    maps_foreach: bool | None = None

    @staticmethod
    def joined(parts: Iterable[Autograd]) -> Autograd:
        """The exceptions of several modules together."""
        joined = Autograd()
        for item in parts:
            joined = item.completed(joined)
        return joined

    def completed(self, fallback: Autograd) -> Autograd:
        """Return the same data with unknown parts taken from another object."""
        lent = {
            name: getattr(fallback, name) for name in ("never", "manual", "takes_sizes") if getattr(self, name) is None
        }
        if self.maps_foreach is None:
            lent.update(foreach=fallback.foreach, maps_foreach=fallback.maps_foreach)
        return replace(self, **lent)


def read_derivative_rules(text: str) -> Autograd:
    """Read the tables of a module of the generator."""
    maps, writes = _foreach(text), "DONT_REQUIRE_DERIVATIVE" in text
    return Autograd(
        _names(text, "DONT_REQUIRE_DERIVATIVE") or None,
        _names(text, "MANUAL_BACKEND") | _names(text, "MANUAL_AUTOGRAD_AND_TRACER") or None,
        "sym_sizes" not in text if "def saved_variables" in text else None,
        frozenset(maps or ()),
        maps is not None if writes or maps is not None else None,
    )


def _names(text: str, name: str) -> frozenset[str]:
    """The names in a set that a Python module defines."""
    match = re.search(rf"^{name} = (?:set\(\[|\{{)([^\]}}]*)", text, re.MULTILINE)
    lines = match[1].splitlines() if match is not None else []
    return frozenset(found for line in lines for found in _NAME.findall(line.partition("#")[0]))


def _foreach(text: str) -> frozenset[tuple[str, str]] | None:
    """Return the pairs of name and overload in the set that says which operators over lists need no derivative."""
    bare = re.sub(r"#.*", "", text)
    match = re.search(r"^_foreach_ops_without_differentiability_info = \{([^}]*)", bare, re.MULTILINE)
    return frozenset(_PAIR.findall(match[1])) if match is not None else None

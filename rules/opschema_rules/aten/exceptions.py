"""Operators that torchgen excepts by name, where a check is younger than they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_LISTS = {
    "lone_outs": ("OUT_OPS_THAT_DONT_GET_GROUPED_PROPERLY",),
    "lone_inplace": ("INPLACE_OPS_THAT_DONT_GET_GROUPED_PROPERLY",),
    "no_out_variant": (
        "MUTABLE_OPS_THAT_CANNOT_GET_AN_OUT_VARIANT",
        "FUNCTIONAL_OPS_THAT_CANNOT_GET_AN_OUT_VARIANT",
    ),
    "not_functionalized": ("MUTABLE_OPS_NOT_USING_FUNCTIONALIZATION",),
}


class Exceptions(msgspec.Struct, frozen=True):
    """Exceptions in one version of torchgen.

    ``lone_outs`` are out variants without other variants, ``lone_inplace`` in-place operators that nothing is generated
    for, ``no_out_variant`` operators with kernels that return no tensor, ``not_functionalized`` those that write and are in
    no group. ``known`` says that it generates variants at all, ``functionalizes`` that it looks for the last.
    """

    lone_outs: frozenset[str] = frozenset()
    lone_inplace: frozenset[str] = frozenset()
    no_out_variant: frozenset[str] = frozenset()
    not_functionalized: frozenset[str] = frozenset()
    known: bool = False
    functionalizes: bool = False

    @staticmethod
    def joined(parts: Iterable[Exceptions]) -> Exceptions:
        """The exceptions of several modules together."""
        found = list(parts)
        return Exceptions(
            **{field: frozenset[str]().union(*(getattr(item, field) for item in found)) for field in _LISTS},
            known=any(item.known for item in found),
            functionalizes=any(item.functionalizes for item in found),
        )


_CHECK = "assert g.has_composite_implicit_autograd_kernel or not modifies_arguments(g)"
"""The same check in versions before 2.13."""

_TEXT = re.compile(r"^ *[\"']([^\"'\n]*)[\"']", re.MULTILINE)


def read_exceptions(text: str) -> Exceptions:
    """Exceptions in a module of torchgen."""
    lists = {
        field: frozenset(name for title in titles for name in _names(text, title)) for field, titles in _LISTS.items()
    }
    return Exceptions(
        **lists,
        known="def add_generated_native_functions" in text,
        functionalizes="Expected composite implicit autograd kernel" in text or _CHECK in text,
    )


def _names(text: str, title: str) -> list[str]:
    found = re.search(rf"^{title}(?:: [^=\n]*)? = [\[(]\n(.*?)^[\])]", text, re.MULTILINE | re.DOTALL)
    return _TEXT.findall(found[1]) if found is not None else []

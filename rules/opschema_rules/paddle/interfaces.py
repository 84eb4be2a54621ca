"""Names of the C++ classes and functions that the new static graph needs for an entry (``op_gen.py``)."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.text import Span
from opschema_rules.paddle.cpp import cpp_names
from opschema_rules.paddle.model import OpEntry, Tree

_CALLED = {"InferSymbolicShapeInterface": "OpInferSymbolicShape", "ParseKernelKeyInterface": "OpParseKernelKey"}
"""Functions that interfaces call, without the name of the operator."""


def required(entry: OpEntry) -> Iterator[tuple[Span, str]]:
    """The classes in ``traits`` and ``interfaces`` and the functions that they call, with the places that ask for them."""
    listed = entry.listed
    if listed.foreign or listed.part in ("dygraph", "legacy") or listed.group not in ("", "pir", "fused", "sparse"):
        return
    for name, place in (*entry.names("traits"), *entry.names("interfaces")):
        symbol = name.rpartition("::")[2]
        yield place, symbol
        if symbol in _CALLED:
            yield from ((place, f"{one}{_CALLED[symbol]}") for one in _classes(entry))


@cached_on_argument
def missing(tree: Tree) -> frozenset[str]:
    """The classes and functions that a tree lacks, though it has most of them."""
    names = {name for entry in tree.entries for _, name in required(entry)}
    functions = {name for name in names if name.endswith(tuple(_CALLED.values()))}
    cpp = cpp_names(tree)
    return cpp.missing(functions) | cpp.missing(names - functions)


def _classes(entry: OpEntry) -> Iterator[str]:
    """The classes of an operator: one for each kernel, and another for its in-place variant."""
    several, suffix = len(entry.kernels) > 1, "Sp" if entry.listed.group == "sparse" else ""
    in_place = entry.get("inplace") is not None or entry.get("view") is not None
    for mark in ("_",) if entry.name.endswith("_") else ("", "_") if in_place else ("",):
        if several:
            yield from (f"{_pascal(kernel.name)}{suffix}{mark}" for kernel in entry.kernels)
        else:
            yield f"{_pascal(entry.name.rstrip('_'))}{mark}{suffix}"


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))

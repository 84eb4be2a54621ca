"""The dialects of backends' YAML: torchgen's own, and those of generators that took its language and went on from there.

A dialect is told by keys that torchgen refuses. Of a foreign one only what it shares with torchgen is read; the rest is
the business of its own generator.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from opschema_cli.source.yaml import Document, Node

BACKEND_KEYS = ("backend", "cpp_namespace", "class_name", "use_out_as_primary", "device_guard")
"""The keys of torchgen that hold no list."""

OPERATOR_LISTS = ("supported", "full_codegen", "symint", "autograd", "ir_gen")
"""The keys of torchgen that hold lists of ATen's operators."""

OWN_LISTS = ("custom", "custom_autograd", "non_native")
"""Lists of operators that ATen does not have."""

SCHEMA_LISTS = (*OWN_LISTS, "official", "quant")
"""Lists of mappings, each with an entire schema in ``func``; those of ``official`` and ``quant`` are copies of ATen's."""

OF_OTHERS = ("symint", "blacklist")
"""Lists that describe operators of the other lists, or exclude them: they contain no operators of their own."""


class Dialect(msgspec.Struct, frozen=True):
    """The language of one generator.

    ``lists`` are the keys that hold operators, ``aten`` those of them whose items are operators of ATen; ``marks`` are keys
    that only this dialect has. ``strict`` says that torchgen itself reads the file, and refuses what it does not know.
    """

    name: str
    lists: tuple[str, ...]
    aten: tuple[str, ...] = OPERATOR_LISTS
    strict: bool = False
    marks: frozenset[str] = msgspec.field(default=frozenset())


TORCHGEN = Dialect("torchgen", (*OPERATOR_LISTS, "non_native"), strict=True)
LAZY_TENSOR = Dialect("lazy-tensor", (*OPERATOR_LISTS, "non_native"), strict=True, marks=frozenset({"non_native"}))
OP_PLUGIN = Dialect(
    "op-plugin",
    ("official", "autograd", "custom", "symint", "quant"),
    aten=(),  # its copies of schemas are compared instead, for the versions that they hold for
    marks=frozenset({"all_version", "official", "quant"}),
)
TORCH_NPU = Dialect(
    "torch-npu",
    (*OPERATOR_LISTS, "custom", "custom_autograd"),
    aten=(),
    marks=frozenset({"custom", "custom_autograd"}),
)
TORCH_MLIR = Dialect(
    "torch-mlir",
    ("supported", "symint", "non_native", "additional_ops", "blacklist", "whitelist"),
    aten=("supported", "symint", "additional_ops"),
    marks=frozenset({"additional_ops", "blacklist", "whitelist"}),
)

OPERATOR_LIST = Dialect("operator-list", ("aten",), aten=("func", "aten"))
"""Lists of operators without schemas, each with the field ``func``, or ``name`` beside ``dispatch``: torch_mlu's under ``aten``,
torch_musa's the file itself.
"""

DIALECTS = {item.name: item for item in (TORCHGEN, LAZY_TENSOR, OP_PLUGIN, TORCH_NPU, TORCH_MLIR, OPERATOR_LIST)}


def dialect_of(document: Document, fields: Mapping[str, Node]) -> Dialect:
    """The dialect of a mapping with these fields."""
    if fields.keys() & OP_PLUGIN.marks and not fields.keys() & set(BACKEND_KEYS):
        return OP_PLUGIN
    if _has_schemas(document, fields.get("aten")) and not fields.keys() & set(BACKEND_KEYS):
        return OPERATOR_LIST
    if any(_has_schemas(document, fields.get(key)) for key in ("supported", *TORCH_NPU.marks)):
        return TORCH_NPU
    if fields.keys() & TORCH_MLIR.marks and not fields.keys() & {"backend", "cpp_namespace"}:
        return TORCH_MLIR
    return LAZY_TENSOR if _has_schemas(document, fields.get("non_native")) else TORCHGEN


def name_in_list(item: Node) -> Node | None:
    """The name of an operator in a vendor's list: its field ``func``, or ``name`` beside ``dispatch``."""
    return item.get("func") or (item.get("name") if item.get("dispatch") is not None else None)


def _has_schemas(document: Document, node: Node | None) -> bool:
    """Whether a list holds a mapping with the key ``func``, which torchgen takes in ``non_native`` alone."""
    items = map(document.follow, node.items) if node is not None and node.is_sequence else ()
    return any(name_in_list(item) is not None for item in items)

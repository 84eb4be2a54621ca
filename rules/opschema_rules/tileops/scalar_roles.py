"""The kind of scalar that the manifest requires, by its path in the entry: text, a flag, or a number, possibly an integer."""

from __future__ import annotations

import re
from typing import Literal

from opschema_cli.source.yaml import Node
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.scalars import misreading
from opschema_rules.tileops.schema_validator import Path

Role = Literal["text", "integer", "float", "number", "flag", "any"]

NUMBERS: tuple[Role, ...] = ("integer", "float", "number")
"""Roles of numbers; a `number` may be an integer or not."""

_FLAGS = ("optional", "mutated", "kw_only", "bench_manifest_driven", "torch_compile_fullgraph")
_TEXT_ATTRIBUTES = ("dtype", "shape", "layout", "constraints", "type")
_NUMERIC = {"int", "float", "complex", "Number", "numbers"}
_CONTAINERS = {"list", "tuple", "List", "Tuple", "Sequence", "Optional", "Union", "None", "typing"}


def is_misread(entry: OpEntry, path: Path, node: Node) -> bool:
    """Whether a reader takes a scalar for something else than its place requires or its look suggests."""
    found = misreading(node)
    if found is None:
        return False
    role = role_at(entry, path)
    return role != "flag" and not (role == "text" and found.read == "text")


def role_at(entry: OpEntry, path: Path) -> Role:
    """The kind that the manifest requires at a path below an entry."""
    if not path or path[-1] in _FLAGS:
        return "flag"
    if path[0] == "workloads":
        return _row_role(entry, path)
    if path[0] != "signature":
        return "text"
    if path[1:2] == ("params",) and len(path) > 3:
        return "text" if path[3] == "type" else _type_role(entry, path[2]) if path[3] == "default" else "any"
    if path[1:2] in (("inputs",), ("outputs",)):
        return "text" if len(path) > 3 and path[3] in _TEXT_ATTRIBUTES else "any"
    return "text"


def _row_role(entry: OpEntry, path: Path) -> Role:
    key = path[2] if len(path) > 2 else ""
    if key in ("label", "dtypes"):
        return "text"
    if isinstance(key, str) and key.removesuffix("_shape") in {tensor.name for tensor in entry.inputs}:
        return "integer"
    return _type_role(entry, key)


def _type_role(entry: OpEntry, param: str | int) -> Role:
    """The kind that the declared type of a param requires of each scalar in its value."""
    declared = entry.param(param) if isinstance(param, str) else None
    words = set(re.findall(r"\w+", declared.type or "")) - _CONTAINERS if declared is not None else set()
    if "bool" in words:
        return "flag"
    if words and words <= _NUMERIC:
        return "integer" if words == {"int"} else "float" if "float" in words and "int" not in words else "number"
    return "text" if words and words <= {"str", "torch", "dtype"} else "any"

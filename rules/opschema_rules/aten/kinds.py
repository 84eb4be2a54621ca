"""Which of torchgen's files a YAML file is, told by what stands in it, and by its name where that is torchgen's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.native import items_of

Kind: TypeAlias = Literal["native", "derivatives", "tags", "backend", ""]

MAY_BE = re.compile(rb"(?m)^[ \t-]*[\"']?(?:func|backend|cpp_namespace|tag|name)[\"']?[ \t]*:")
"""What every such file holds, so that others are not parsed."""

_NAMES: dict[str, Kind] = {
    "native_functions.yaml": "native",
    "derivatives.yaml": "derivatives",
    "tags.yaml": "tags",
}
_OTHER_GENERATORS = ("kernels", "op", "aten", "kernel")
"""Fields of lists of operators for ExecuTorch's generator, and of torchgen's own deprecated.yaml."""

_LISTS = ("supported", "full_codegen", "symint", "autograd", "custom", "ir_gen", "official", "blacklist", "whitelist")


def kind_of(file: YamlFile) -> Kind:
    """Which of them it is; empty for any other file."""
    root = file.root
    if root is None:
        return ""
    if root.is_mapping:
        return "backend" if _is_backend(root) else ""
    items = [item for item in items_of(file) if item.is_mapping]
    return _kind_of_list(items, file.path.rpartition("/")[2]) if items else ""


def _is_backend(root: Node) -> bool:
    """Whether a mapping names a backend and lists operators, or is meant to."""
    keys = {key.value for key, _ in root.pairs() if key.kind == "scalar"}
    return (bool({"cpp_namespace", "backend"} & keys) and bool(keys.intersection(_LISTS))) or {
        "backend",
        "cpp_namespace",
    } <= keys


def _kind_of_list(items: Sequence[Node], name: str) -> Kind:
    if any(item.get(key) is not None for item in items for key in _OTHER_GENERATORS):
        return ""
    for kind, key, mark in (("native", "func", "("), ("derivatives", "name", "->"), ("tags", "tag", "")):
        having = [item for item in items if _says(item.get(key), mark)]
        listed = kind != "tags" or any(item.get("desc") is not None for item in having)
        if listed and (2 * len(having) > len(items) or (having and _NAMES.get(name) == kind)):
            return kind  # type: ignore[return-value]  # mypy widens the loop's variable
    return ""


def _says(node: Node | None, mark: str) -> bool:
    return node is not None and node.kind == "scalar" and mark in node.value

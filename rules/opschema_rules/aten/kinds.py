"""Which of torchgen's files a YAML file is, told by what stands in it, and by its name where that is torchgen's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from opschema_cli.source.yaml import Node, YamlFile

Kind: TypeAlias = Literal["native", "derivatives", "deprecated", "tags", "backend", ""]

MAY_BE = re.compile(rb"(?m)^[ \t-]*[\"']?(?:func|backend|cpp_namespace|tag|name)[\"']?[ \t]*:")
"""What every such file holds, so that others are not parsed."""

_NAMES: dict[str, Kind] = {
    "native_functions.yaml": "native",
    "derivatives.yaml": "derivatives",
    "tags.yaml": "tags",
}
_OTHER_GENERATORS = ("kernels", "op", "aten", "kernel")
"""Fields of lists of operators for ExecuTorch's generator; ``aten`` of torchgen's own deprecated.yaml, too."""

_LISTS = ("supported", "full_codegen", "symint", "autograd", "custom", "ir_gen", "official", "blacklist", "whitelist")


NATIVE_NAME = "native_functions.yaml"


def items_of(file: YamlFile) -> list[Node]:
    """The items of a file that is a list, aliases followed; none of another file."""
    root = file.root
    return [file.document.follow(item) for item in root.items] if root is not None and root.is_sequence else []


def kind_of(file: YamlFile) -> Kind:
    """Which of them it is; empty for any other file."""
    return _kind_by_content(file) or ("native" if _is_meant_native(file) else "")


def _is_meant_native(file: YamlFile) -> bool:
    """Whether only the name tells what it is: it is empty, or holds nothing that is right."""
    fields = {key.value for item in items_of(file) for key, _ in item.pairs()}
    return file.path.rpartition("/")[2] == NATIVE_NAME and not fields.intersection(_OTHER_GENERATORS)


def _kind_by_content(file: YamlFile) -> Kind:
    root = file.root
    if root is None:
        return ""
    if root.is_mapping:
        return "backend" if _is_backend(root) else ""
    items = [item for item in items_of(file) if item.is_mapping]
    if {"backend", "cpp_namespace"} <= {key.value for item in items for key, _ in item.pairs()}:
        return "backend"  # meant as a mapping, and written as a list
    return _kind_of_list(items, file.path.rpartition("/")[2]) if items else ""


def _is_backend(root: Node) -> bool:
    """Whether a mapping names a backend and lists operators, or is meant to; or lists them as op-plugin or torch-mlir do."""
    keys = {key.value for key, _ in root.pairs() if key.kind == "scalar"}
    if ("all_version" in keys and {"official", "custom"} & keys) or {"supported", "blacklist"} <= keys:
        return True
    return (bool({"cpp_namespace", "backend"} & keys) and bool(keys.intersection(_LISTS))) or {
        "backend",
        "cpp_namespace",
    } <= keys


def _kind_of_list(items: Sequence[Node], name: str) -> Kind:
    deprecated = [item for item in items if _says(item.get("name"), "(") and _says(item.get("aten"), "(")]
    if 2 * len(deprecated) > len(items) or (deprecated and name == "deprecated.yaml"):
        return "deprecated"
    if any(item.get(key) is not None for item in items for key in _OTHER_GENERATORS):
        return ""
    for kind, key, mark in (("native", "func", "("), ("derivatives", "name", "->"), ("tags", "tag", "")):
        named = _NAMES.get(name) == kind
        having = [item for item in items if _says(item.get(key), "(" if named and mark == "->" else mark)]
        listed = kind != "tags" or any(item.get("desc") is not None for item in having)
        if listed and (2 * len(having) > len(items) or (having and named)):
            return kind  # type: ignore[return-value]  # mypy widens the loop's variable
    return ""


def _says(node: Node | None, mark: str) -> bool:
    return node is not None and node.kind == "scalar" and mark in node.value

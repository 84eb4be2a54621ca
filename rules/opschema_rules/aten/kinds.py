"""Kinds of torchgen's YAML files, recognised by content, and by name where that is torchgen's own."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence, Set
from typing import Literal, TypeAlias

from opschema_cli.source.line_keys import LineKeys
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.suggestions import nearest
from opschema_rules.aten.dialects import name_in_list

Kind: TypeAlias = Literal["native", "derivatives", "deprecated", "tags", "backend", ""]

_SCHEMA = rb"[\"']?[\w.:]+\([^\n]*\)[ \t]*->"


def _keys(*keys: bytes, before: bytes = rb"[ \t-]*(?:\{[ \t]*)?[\"']?") -> LineKeys:
    """Keys that may have quotes, or be the first in braces."""
    return LineKeys(*keys, before=before, after=rb"[\"']?[ \t]*:")


_LISTED = _keys(b"func", b"cpp_namespace")
_BACKEND = _keys(b"backend", before=rb"(?:-[ \t]*)?(?:\{[ \t]*)?[\"']?")
_TAG, _DESCRIPTION, _DISPATCHED, _NAME = _keys(b"tag"), _keys(b"desc"), _keys(b"dispatch"), _keys(b"name")
_ATEN = re.compile(rb"\baten\b")

_SURELY_LISTED = LineKeys(b"func", b"name", before=rb"[ \t]*-[ \t]+", after=rb"[ \t]*:[ \t]*" + _SCHEMA)
_SURELY_BACKEND = LineKeys(b"backend"), LineKeys(b"cpp_namespace")
_SURELY_OTHERS = LineKeys(b"kernels", b"op", b"arg_meta", before=rb"[ \t-]+")


def may_be(data: bytes) -> bool:
    """Whether a file contains the words of every torchgen file, so that others need not be parsed."""
    if _LISTED.found(data) or _BACKEND.found(data) or (_TAG.found(data) and _DESCRIPTION.found(data)):
        return True
    signs = b"->" in data or (b"aten" in data and _ATEN.search(data) is not None) or _DISPATCHED.found(data)
    return signs and _NAME.found(data)


def is_surely(data: bytes) -> bool:
    """Whether a file that does not parse is plainly one of torchgen's: it lists schemas, or names a backend and its namespace."""
    lists = _SURELY_LISTED.found(data) and not _SURELY_OTHERS.found(data)
    return lists or all(key.found(data) for key in _SURELY_BACKEND)


_NAMES: dict[str, Kind] = {
    "native_functions.yaml": "native",
    "derivatives.yaml": "derivatives",
    "tags.yaml": "tags",
}
_OTHER_GENERATORS = ("kernels", "op", "aten", "kernel")
"""Fields of lists of operators for ExecuTorch's generator; ``aten`` of torchgen's own deprecated.yaml, too."""

_REQUIRED = frozenset({"backend", "cpp_namespace"})
_MOST_KEYS = 20
_LISTS = ("supported", "full_codegen", "symint", "autograd", "custom", "ir_gen", "official", "blacklist", "whitelist")
_OWN_LISTS = frozenset({"supported", "full_codegen", "symint", "autograd", "ir_gen"})
"""Lists two of which beside ``backend`` identify a backend; the others are words of many configurations."""

_MLIR = frozenset({"symint", "additional_ops", "non_native", "full_codegen", "whitelist"})
"""Keys beside ``supported`` and ``blacklist`` in torch-mlir's file."""

_TAGS = frozenset({"core", "pointwise", "inplace_view", "nondeterministic_seeded", "dynamic_output_shape", "generated"})
"""Tags of PyTorch; every release has some of them."""

_TEXT_OF_SCHEMA = re.compile(r"[\w.:]+\s*\(.*\)\s*->", re.DOTALL)


_NATIVE = "native_functions.yaml"
_NEIGHBOURS = {"tags.yaml": (_NATIVE,), "derivatives.yaml": ("load_derivatives.py", _NATIVE)}
"""Files whose presence beside a file of this name shows that it is torchgen's."""


def may_be_meant(path: str, files: Container[str]) -> bool:
    """Whether a file belongs to torchgen by its name and place, regardless of its content."""
    folder, slash, name = path.rpartition("/")
    return name == _NATIVE or any(f"{folder}{slash}{beside}" in files for beside in _NEIGHBOURS.get(name, ()))


def items_of(file: YamlFile) -> list[Node]:
    """Return the items of a file that is a list, with aliases followed; empty for any other file."""
    root = file.root
    return [file.document.follow(item) for item in root.items] if root is not None and root.is_sequence else []


def mappings_of(file: YamlFile) -> list[tuple[int, Node]]:
    """The items that are mappings, with their numbers among all."""
    return [(index, item) for index, item in enumerate(items_of(file)) if item.is_mapping]


def kind_of(file: YamlFile, files: Container[str] = ()) -> Kind:
    """Kind of a file; empty for any other file. ``files`` are the paths of the workspace."""
    return _kind_by_content(file) or _kind_by_place(file, files)


def _kind_by_place(file: YamlFile, files: Container[str]) -> Kind:
    """Return the kind of a file by its name and place alone, for one that is empty or has no valid content."""
    if not may_be_meant(file.path, files):
        return ""
    fields = {key.value for item in items_of(file) for key, _ in item.pairs()}
    return _NAMES[file.path.rpartition("/")[2]] if fields.isdisjoint(_OTHER_GENERATORS) else ""


def _kind_by_content(file: YamlFile) -> Kind:
    root = file.root
    if root is None:
        return ""
    if root.is_mapping:
        return "backend" if _is_backend(root, file.path) or _lists_aten(root) else ""
    items = [item for item in items_of(file) if item.is_mapping]
    if {"backend", "cpp_namespace"} <= {key.value for item in items for key, _ in item.pairs()}:
        return "backend"  # meant as a mapping, and written as a list
    kind = _kind_of_list(items, file.path.rpartition("/")[2]) if items else ""
    return kind or ("backend" if lists_kernels(items) else "")


_OPERATOR = re.compile(r"[a-z_]\w*(?:\.\w+)?", re.ASCII | re.IGNORECASE)
_DISPATCH_KEYS = re.compile(
    r"(?:\w*PrivateUse\d|Composite\w+|Autograd\w*|\w*(?:CPU|CUDA|XPU|HPU|MPS|MTIA|XLA|IPU|VE)|Meta)\b"
)
_MOST_ITEMS = 2000


def lists_kernels(items: Sequence[Node]) -> bool:
    """Whether a list names operators without their schemas, and under ``dispatch`` the kernels of some, as torch_musa's does."""
    some = items[:_MOST_ITEMS]
    named = [item for item in some if item.is_mapping and (name := name_in_list(item)) and _is_operator(name)]
    tables = [item.get("dispatch") for item in named]
    keys = [key.value for table in tables if table is not None and table.is_mapping for key, _ in table.pairs()]
    return 2 * len(named) > len(some) and any(map(_DISPATCH_KEYS.match, keys))


def _lists_aten(root: Node) -> bool:
    """Whether a mapping lists ATen's operators under ``aten``, each by name, as torch_mlu's does."""
    listed = root.get("aten")
    items = listed.items[:_MOST_ITEMS] if listed is not None and listed.is_sequence else []
    named = [item for item in items if item.is_mapping and (name := name_in_list(item)) and name.kind == "scalar"]
    return bool(items) and 2 * len(named) > len(items)


def _is_operator(node: Node) -> bool:
    return node.kind == "scalar" and _OPERATOR.fullmatch(node.value) is not None


def _is_backend(root: Node, path: str) -> bool:
    """Whether a mapping names a backend and lists operators, or is meant to; or lists them as op-plugin or torch-mlir do."""
    keys = {key.value for key, _ in root.pairs() if key.kind == "scalar"}
    if ("all_version" in keys and {"official", "custom"} & keys) or (
        {"supported", "blacklist"} <= keys and keys & _MLIR
    ):
        return True
    named = _REQUIRED & keys
    if named == {"backend"}:
        lists = keys & _OWN_LISTS
        return len(lists) > 1 or (bool(lists) and path.endswith(f"_{_NATIVE}")) or _has_slip(root, named)
    return bool(named) and (named == _REQUIRED or bool(keys.intersection(_LISTS)) or _has_slip(root, named))


_MEANT = 0.85
"""The similarity of a key to `cpp_namespace`, from which it counts as that key (difflib's ratio)."""


def _has_slip(root: Node, named: Set[str]) -> bool:
    """Whether the other key that every backend has, or a list, is present but misspelt."""
    # Not at the top: that module is not needed to tell what a file is, but for this.
    from opschema_rules.aten.vocabulary import slip

    for key, value in list(root.pairs())[:_MOST_KEYS]:
        name = key.value if key.kind == "scalar" and key.value != "backends" else ""
        if value.kind == "scalar" and slip(name, _REQUIRED - named):
            return True
        if value.kind == "scalar" and nearest(name, {"cpp_namespace"} - named, _MEANT) is not None:
            return True
        if value.is_sequence and "cpp_namespace" in named and slip(name, _LISTS):
            return True
    return False


def _kind_of_list(items: Sequence[Node], name: str) -> Kind:
    deprecated = [item for item in items if _says(item.get("name"), "(") and _says(item.get("aten"), "(")]
    if 2 * len(deprecated) > len(items) or (deprecated and name == "deprecated.yaml"):
        return "deprecated"
    if any(item.get(key) is not None for item in items for key in _OTHER_GENERATORS):
        return ""
    for kind, key, mark in (("native", "func", "("), ("derivatives", "name", "->"), ("tags", "tag", "")):
        named = _NAMES.get(name) == kind
        having = [item for item in items if _says(item.get(key), "(" if named and mark == "->" else mark)]
        if _is_torchgens(kind, key, having, named=named) and (2 * len(having) > len(items) or (having and named)):
            return kind  # type: ignore[return-value]  # mypy widens the loop's variable
    return ""


def _is_torchgens(kind: str, key: str, items: Sequence[Node], *, named: bool) -> bool:
    """Whether a list is plainly torchgen's: tags, if its file is called so and some are PyTorch's, else schemas among the texts."""
    texts = [node.value for item in items if (node := item.get(key)) is not None]
    if kind == "tags":
        return named and not _TAGS.isdisjoint(texts)
    return named or any(_TEXT_OF_SCHEMA.match(text) for text in texts)


def _says(node: Node | None, mark: str) -> bool:
    return node is not None and node.kind == "scalar" and mark in node.value

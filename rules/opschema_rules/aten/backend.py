"""Reads the YAML of a backend outside of PyTorch's tree."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.dialects import OPERATOR_LIST, dialect_of, name_in_list
from opschema_rules.aten.entry import string
from opschema_rules.aten.kinds import items_of, lists_kernels
from opschema_rules.aten.model import BackendFile, BackendItem, Reference
from opschema_rules.aten.torchgen import Torchgen
from opschema_rules.aten.torchgen_table import newest_torchgen


def read_backend(file: YamlFile, reference: Reference | None, torchgen: Torchgen | None = None) -> BackendFile | None:
    """A backend's YAML, as the newest known torchgen reads it without another; None when the file is empty.

    Of its lists the items are read that name an operator; others, and lists that are none, are the business of a rule.
    """
    root = file.root
    if root is None:
        return None
    backend = BackendFile(file, 0, root, torchgen or newest_torchgen(), reference=reference)
    if root.is_sequence and lists_kernels(items_of(file)):
        backend.dialect = OPERATOR_LIST.name
        backend.items += _items(file, "func", root)
        return backend
    dialect = dialect_of(file.document, {key: value for key, (_, value) in backend.written.items()})
    backend.dialect = dialect.name
    for section in dialect.lists:
        backend.items += _items(file, section, backend.get(section))
    return backend


OPTIONS = ("structured", "define_meta", "ext_structured_meta", "device_guard", "use_out_as_primary")
"""The options of an operator that are true or false (PyTorch's pull request #172539)."""


def has_options_beside(file: YamlFile, item: Node) -> bool:
    """Whether options of an operator are written beside its name, as PyTorch's own `openreg_native_functions.yaml` does."""
    name = file.document.follow(item.items[1]) if len(item.items) > 2 else None
    return (
        name is not None
        and name.kind == "scalar"
        and not name.value
        and all(key.value in OPTIONS for key in item.items[2::2])
    )


def _items(file: YamlFile, section: str, node: Node | None) -> Iterator[BackendItem]:
    for item in map(file.document.follow, node.items if node is not None and node.is_sequence else ()):
        found = _item(file, section, item)
        if found is not None:
            yield found


def _item(file: YamlFile, section: str, node: Node) -> BackendItem | None:
    """The operator that an item names: ``add.Tensor``, ``add.out: {structured: true}``, ``func: add.Tensor(...) -> ...`` or a
    vendor's ``name: add.Tensor``.
    """
    if node.kind == "scalar":
        name = string(node)
        return BackendItem(section, name, node, node) if name else None
    schema = name_in_list(node)
    if schema is not None:
        schema = file.document.follow(schema)
        name = (string(schema) or "").partition("(")[0].strip()
        return BackendItem(section, name, node, schema, node) if name else None
    if node.is_mapping and node.items and string(node.items[0]):
        beside = has_options_beside(file, node)
        options = node if beside else file.document.follow(node.items[1]) if len(node.items) == 2 else None
        return BackendItem(section, node.items[0].value, node, node.items[0], options) if options is not None else None
    return None

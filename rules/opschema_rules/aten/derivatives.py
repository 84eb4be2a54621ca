"""Reads derivatives.yaml."""

from __future__ import annotations

from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile, NativeFile
from opschema_rules.aten.native import items_of


def read_derivatives(file: YamlFile, native: NativeFile | None) -> DerivativesFile:
    """A derivatives.yaml; items that are no mappings are left out."""
    derivatives = DerivativesFile(file, native)
    items = enumerate(items_of(file))
    derivatives.entries += [DerivativeEntry(file, index, node, derivatives) for index, node in items if node.is_mapping]
    return derivatives

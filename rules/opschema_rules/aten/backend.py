"""Reads the YAML of a backend outside of PyTorch's tree."""

from __future__ import annotations

from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.model import BackendFile, Reference


def read_backend(file: YamlFile, reference: Reference | None) -> BackendFile | None:
    """A backend's YAML; None when its root is no mapping."""
    root = file.root
    return BackendFile(file, 0, root, reference=reference) if root is not None and root.is_mapping else None

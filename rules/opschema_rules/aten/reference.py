"""Finds PyTorch's own operators, by which a backend's YAML is judged."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.project import Project
from opschema_rules.aten.model import NativeFile, Reference


def find_reference(project: Project, path: str, natives: Sequence[NativeFile]) -> Reference | None:
    """The operators that the file at ``path`` is judged by; None when they are not known."""
    return Reference(natives[0], natives[0].path, certain=True) if len(natives) == 1 else None

"""Reads the specs of tensors of pypto-lib, each builder with the entry that it is for."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.project import Project
from opschema_rules.pypto.model import SpecPair


def read_pairs(project: Project, paths: Iterable[str]) -> list[SpecPair]:
    """The builders of specs in some Python files, with their entries."""
    return []

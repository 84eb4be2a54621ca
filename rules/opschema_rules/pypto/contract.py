"""Finds out which contract the runtime of a tree has."""

from __future__ import annotations

from opschema_cli.project import Project
from opschema_rules.pypto.head import PyptoOptions
from opschema_rules.pypto.model import Contract


def find_contract(project: Project, options: PyptoOptions) -> Contract:
    """What the tree's own runtime, or the configuration, demands."""
    return Contract()

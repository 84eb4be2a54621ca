"""Scopes that the pack's migrations search."""

from __future__ import annotations

from opschema_cli.migrate.migration import Scope
from opschema_rules.flydsl.model import FlyTree

TREE = Scope((FlyTree,), "no FlyDSL kernel in this tree")

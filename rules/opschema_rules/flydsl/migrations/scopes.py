"""Scopes that the pack's migrations search."""

from __future__ import annotations

from opschema_cli.migrate.migration import Scope
from opschema_rules.flydsl.code import FlyFile

TREE = Scope((FlyFile,), "no FlyDSL code in this tree")

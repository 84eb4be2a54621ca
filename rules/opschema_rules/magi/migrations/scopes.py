"""Scopes that the pack's migrations search."""

from __future__ import annotations

from opschema_cli.migrate.migration import Scope
from opschema_rules.magi.model import MagiOp

OPS = Scope((MagiOp,), "no op of MagiCompiler in this tree")

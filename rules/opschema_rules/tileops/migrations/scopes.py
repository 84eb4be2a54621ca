"""Scopes that the pack's migrations search."""

from __future__ import annotations

from opschema_cli.migrate.migration import Scope
from opschema_rules.tileops.model import OpEntry

ENTRIES = Scope((OpEntry,), "no entry of a manifest in this tree")

"""Scopes that the pack's migrations search."""

from __future__ import annotations

from opschema_cli.migrate.migration import Scope
from opschema_rules.pypto.model import Program, SpecEntry

PROGRAMS = Scope((Program,), "no program with kernels in this tree")
SPECS = Scope((SpecEntry,), "no entry with `TensorSpec`s in this tree")

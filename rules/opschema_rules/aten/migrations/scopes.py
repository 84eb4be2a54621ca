"""Scopes of the pack's migrations."""

from __future__ import annotations

from opschema_cli.migrate.migration import Scope
from opschema_rules.aten.model import BackendFile, NativeEntry

ENTRIES = Scope((NativeEntry,), "no native_functions.yaml in this tree")
BACKENDS = Scope((BackendFile,), "no backend YAML in this tree")
FILES = Scope((NativeEntry, BackendFile), "no native_functions.yaml and no backend YAML in this tree")

"""The tree of a draft."""

from __future__ import annotations

from opschema_cli.migrate.draft import Draft
from opschema_rules.flydsl.code import FlyCode
from opschema_rules.flydsl.model import FlyTree


def tree_of(draft: Draft) -> FlyTree | None:
    """Return the tree that the pack read; None if it found none."""
    return next((item.tree for item in draft.loaded.subjects if isinstance(item, FlyCode)), None)

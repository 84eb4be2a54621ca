"""The findings of a pack in a tree, in the form in which they were judged."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.cache import Cache
from opschema_cli.config import load_config
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import Linted
from opschema_cli.workspace import Workspace


def findings(pack: Pack, root: Path) -> list[str]:
    """Each finding as its code, place and the text there, in report order."""
    project = Project(Workspace(root), Cache.for_workspace(root))
    registry = Registry((pack,))
    config, _ = load_config(root)
    linted = Linted(run(Job(registry, resolve_settings(config, registry)), project), project)
    return [
        f"{item.code} {item.place.path}:{linted.position(item.place).line} {linted.text(item.place)}"
        for item in linted.diagnostics
    ]

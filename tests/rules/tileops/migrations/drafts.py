"""Runs one migration over a workspace given as texts, or over a tree on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Result, Task, migrate_all
from opschema_cli.migrate.migration import Migration, Note, Site
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK, TileopsOptions, load

YAML, CODE, TEST, BENCH = (
    "kit/manifest/example.yaml",
    "kit/ops/example.py",
    "tests/test_example.py",
    "benchmarks/bench_example.py",
)


@dataclass(frozen=True)
class Migrated:
    """What a migration did: the sites it changed, the new text of each changed file, and its notes."""

    draft: Draft
    result: Result

    @property
    def sites(self) -> list[Site]:
        return [item.site for item in self.result.sites if item.status == "migrated"]

    @property
    def left(self) -> list[Site]:
        return [item.site for item in self.result.sites if item.status == "left"]

    @property
    def notes(self) -> list[Note]:
        return [item.note for item in self.result.notes]

    @property
    def texts(self) -> dict[str, str | None]:
        return {change.path: change.after for change in self.draft.changes}

    def text(self, path: str) -> str:
        return self.draft.text(path)

    @property
    def said(self) -> list[tuple[str, int, str]]:
        """Path, line and message of each note."""
        return [(item.note.place.path, item.position.line, item.note.message) for item in self.result.notes]

    def lines(self, path: str) -> list[str]:
        """The lines of a file that are new."""
        change = next((item for item in self.draft.changes if item.path == path), None)
        before = (change.before or "").splitlines() if change is not None else []
        return [line.strip() for line in self.text(path).splitlines() if line not in before] if change else []


def files(*fences: tuple[str, str], **more: str) -> dict[str, str]:
    """An example's workspace; ``a__b`` is the file ``a/b.py``."""
    return {**example_files(fences), **{path.replace("__", "/") + ".py": text for path, text in more.items()}}


def run(draft: Draft, migration: Migration, options: Mapping[str, object], pack_options: TileopsOptions) -> Migrated:
    """Run a migration as the engine does: it would fail if a second run found anything but what was left."""
    filled = msgspec.convert(dict(options), migration.options, strict=False)
    task = Task(migration, filled, lambda project: load(project, pack_options))
    registry = Registry((PACK,))
    ground = Ground(registry, resolve_settings(Config(), registry), Choice((), ()))
    return Migrated(draft, migrate_all(draft, [task], ground)[0])


def migrate(texts: Mapping[str, str], migration: Migration, **options: object) -> Migrated:
    """Run a migration over texts, and check that a second run changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), texts)
        _ = workspace.files
        pack_options = TileopsOptions(spec=["latest"])
        draft = Draft(Project(workspace), lambda project: load(project, pack_options))
        done = run(draft, migration, options, pack_options)
        before = draft.changes
        run(draft, migration, options, pack_options)
        assert draft.changes == before
        return done

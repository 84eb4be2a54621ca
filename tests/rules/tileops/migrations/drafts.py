"""Runs one migration over a workspace given as texts, and tells what it did as these tests ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opschema_cli.migrate.engine import Result
from opschema_cli.migrate.migration import Migration, Note, Site
from opschema_cli.testing import migrate_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

YAML, CODE, TEST, BENCH = (
    "kit/manifest/example.yaml",
    "kit/ops/example.py",
    "tests/test_example.py",
    "benchmarks/bench_example.py",
)


@dataclass(frozen=True)
class Migrated:
    """The result of a migration of ``before``: the changed sites, the new text of each changed file, and its notes."""

    before: Mapping[str, str]
    after: Mapping[str, str]
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
        paths = sorted({*self.before, *self.after})
        return {path: self.after.get(path) for path in paths if self.before.get(path) != self.after.get(path)}

    def text(self, path: str) -> str:
        return self.after[path]

    @property
    def said(self) -> list[tuple[str, int, str]]:
        """Path, line and message of each note."""
        return [(item.note.place.path, item.position.line, item.note.message) for item in self.result.notes]

    def lines(self, path: str) -> list[str]:
        """The lines of a file that are new."""
        before = self.before.get(path, "").splitlines()
        return [line.strip() for line in self.after[path].splitlines() if line not in before]


def files(*fences: tuple[str, str], **more: str) -> dict[str, str]:
    """An example's workspace; ``a__b`` is the file ``a/b.py``."""
    return {**example_files(fences), **{path.replace("__", "/") + ".py": text for path, text in more.items()}}


def migrate(texts: Mapping[str, str], migration: Migration, **options: object) -> Migrated:
    """Run a migration over texts, and check that a second run changes nothing."""
    told = [f"{name}={value}" for name, value in options.items() if value is not None]
    done = migrate_files(PACK, migration.name, texts, told)
    return Migrated(texts, done.files, done.result)

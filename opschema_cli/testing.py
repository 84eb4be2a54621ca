"""For authors of rules, migrations and packs: lint or migrate files given as texts, and check that a rule's examples hold.

Example:
    >>> from opschema_cli.testing import check_examples
    >>> def test_my_rules() -> None:
    ...     for rule in PACK.rules:
    ...         check_examples(PACK, rule)
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from opschema_cli.config import Config, load_config
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.fix import fix_all
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.rule import Rule, examples
from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import Ground, Result, Task, migrate_all
from opschema_cli.migrate.options import fill
from opschema_cli.project import Project
from opschema_cli.source.text import Position
from opschema_cli.workspace import Workspace


class Linted(msgspec.Struct, frozen=True):
    """What linting some texts found."""

    outcome: Outcome
    project: Project

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The findings, in report order."""
        return self.outcome.diagnostics

    def codes(self) -> list[str]:
        """The findings' codes, in report order."""
        return [item.code for item in self.diagnostics]

    def text(self, place: Place) -> str:
        """The text at a place."""
        source = self.project.source(place.path)
        return "" if source is None else source.text[place.span.start : place.span.end]

    def position(self, place: Place) -> Position:
        """Line and column of a place."""
        source = self.project.source(place.path)
        return Position(0, 0) if source is None else source.position(place.span.start)


def lint_files(packs: Iterable[Pack], files: Mapping[str, str], select: Iterable[str] = ()) -> Linted:
    """Lint a workspace made of ``files`` (path to text); ``select`` are codes or names, default all."""
    job, project = _prepare(packs, files, select)
    return Linted(run(job, project), project)


def fix_files(
    packs: Iterable[Pack], files: Mapping[str, str], select: Iterable[str] = (), *, unsafe: bool = False
) -> tuple[dict[str, str], Linted]:
    """Lint and fix; the changed texts by path, and what is left."""
    job, project = _prepare(packs, files, select)
    outcome = run(job, project)

    def reload(texts: dict[str, str]) -> Project:
        return Project(project.workspace.with_overlay(texts))

    fixed, outcome, project = fix_all(job, project, outcome, reload, unsafe=unsafe)
    return fixed.texts, Linted(outcome, project)


class Migrated(msgspec.Struct, frozen=True):
    """What a migration made of some texts: all files by path, and what it tells of its sites and notes."""

    files: dict[str, str]
    result: Result

    def notes(self) -> list[str]:
        """The notes as ``path:line: message``."""
        return [f"{left.note.place.path}:{left.position.line}: {left.note.message}" for left in self.result.notes]

    def sites(self) -> list[str]:
        """The sites as ``path:line: title``, those left alone with their status."""
        return [
            f"{item.site.place.path}:{item.position.line}: {item.site.title}"
            + ("" if item.status == "migrated" else f" ({item.status})")
            for item in self.result.sites
        ]


def migrate_files(
    pack: Pack,
    name: str,
    files: Mapping[str, str],
    options: Iterable[str] = (),
    *,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
) -> Migrated:
    """Run a migration over a workspace made of ``files`` (path to text); ``options`` are ``NAME=VALUE``.

    It is run a second time, which may change nothing.

    Raises:
        MigrationFailure: the migration raises, leaves what does not parse, or would have to run again.
        AssertionError: the second run changes something.
        OpschemaError: it refuses its options, or a place means nothing.
    """
    job, project = _prepare([pack], files, [])
    record = next(item for item in pack.all_migrations() if item.name == name)
    pack_options = job.settings.pack_options[pack.name]
    task = Task(record, fill([record], options)[name], lambda loaded: pack.load(loaded, pack_options))
    draft = Draft(project, task.load)
    choice = Choice(tuple(only), tuple(skip))
    ground = Ground(job.registry, job.settings, choice)
    result = migrate_all(draft, [task], ground)[0]
    choice.check()
    done = draft.changes
    migrate_all(draft, [task], ground)
    assert draft.changes == done, f"a second run of `{name}` changes something"
    workspace = draft.project.workspace
    return Migrated({path: workspace.source(path).text for path in workspace.files}, result)


def _prepare(packs: Iterable[Pack], files: Mapping[str, str], select: Iterable[str]) -> tuple[Job, Project]:
    registry = Registry(tuple(packs))
    root = _empty_folder()
    config = _config(files["opschema.toml"]) if "opschema.toml" in files else load_config(root)[0]
    return Job(registry, resolve_settings(config, registry, select=select)), Project(Workspace(root, files))


@cache
def _empty_folder() -> Path:
    """One for all workspaces: to make and remove a folder takes a slow disk longer than linting takes."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _config(text: str) -> Config:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "opschema.toml").write_text(text, encoding="utf-8")
        return load_config(Path(folder))[0]


def check_examples(pack: Pack, rule: Rule) -> None:
    """Assert that a rule's page has Bad and Good examples, that it fires on each Bad one and on no Good one,
    and that each of its fixes cures its finding.

    Raises:
        AssertionError: saying which example does not hold.
    """
    found = examples(rule.doc)
    kinds = [example.kind for example in found]
    assert "bad" in kinds, f"{rule.code}: its page has no Bad example"
    assert "good" in kinds, f"{rule.code}: its page has no Good example"
    for number, example in enumerate(found, 1):
        files = pack.example(example.fences)
        linted = lint_files([pack], files, [rule.code])
        codes = [item for item in linted.codes() if item == rule.code]
        where = f"{rule.code}: example {number} ({example.kind})"
        crashes = [item.message for item in linted.diagnostics if item.code == "OPS900"]
        assert not crashes, f"{where}: {crashes[0]}"
        if example.kind == "good":
            assert not codes, f"{where}: {[item.message for item in linted.diagnostics]}"
        else:
            assert codes, f"{where}: the rule does not fire"
            _check_fixes(pack, rule, files, linted, where)


def _check_fixes(pack: Pack, rule: Rule, files: Mapping[str, str], linted: Linted, where: str) -> None:
    fixes = [item.fix for item in linted.diagnostics if item.fix is not None]
    assert not fixes or rule.fixable, f"{where}: a fix, but the rule is not declared fixable"
    if fixes:
        texts, after = fix_files([pack], files, [rule.code], unsafe=True)
        assert texts, f"{where}: the fix changes nothing"
        left = [item for item in after.diagnostics if item.code == rule.code and item.fix is not None]
        assert not left, f"{where}: the fix does not cure it: {left[0].message}"

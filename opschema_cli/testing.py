"""For authors of packs, rules and migrations: lint, fix or migrate files given as texts, and check the examples of rules.

Example:
    >>> from opschema_cli.testing import check_pack
    >>> def test_the_examples_of_all_rules() -> None:
    ...     check_pack(PACK)
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from opschema_cli.authoring import at
from opschema_cli.config import Config, load_config
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.fix import fix_all
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.pack_calls import finds, loaded_by
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.rule import Example, Rule, examples
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
    """The result of linting some texts."""

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


def lint_files(packs: Pack | Iterable[Pack], files: Mapping[str, str], select: Iterable[str] = ()) -> Linted:
    """Lint a workspace made of ``files`` (path to text) with one or several packs; ``select`` are codes or names, by default
    all.
    """
    job, project = _prepare(packs, files, select)
    return Linted(run(job, project), project)


def fix_files(
    packs: Pack | Iterable[Pack], files: Mapping[str, str], select: Iterable[str] = (), *, unsafe: bool = False
) -> tuple[dict[str, str], Linted]:
    """Lint and fix; the changed texts by path, and the findings that are left."""
    job, project = _prepare(packs, files, select)
    outcome = run(job, project)

    def reload(texts: dict[str, str]) -> Project:
        return Project(project.workspace.with_overlay(texts))

    fixed, outcome, project = fix_all(job, project, outcome, reload, unsafe=unsafe)
    return fixed.texts, Linted(outcome, project)


class Migrated(msgspec.Struct, frozen=True):
    """The result of a migration of some texts: all files by path, its sites and its notes."""

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
    """Run a migration on a workspace made of ``files`` (path to text); ``options`` are ``NAME=VALUE``.

    It is run a second time, which may change nothing.

    Raises:
        MigrationFailure: the migration raises, leaves what does not parse, or would have to run again.
        AssertionError: the pack has no such migration, or the second run changes something.
        OpschemaError: it refuses its options, or a place means nothing.
    """
    job, project = _prepare([pack], files, [])
    known = {item.name: item for item in pack.all_migrations()}
    assert name in known, f"the pack `{pack.name}` has no migration `{name}`; it has: {', '.join(known) or 'none'}"
    record = known[name]
    pack_options = job.settings.pack_options[pack.name]
    task = Task(record, fill([record], options)[name], lambda loaded: loaded_by(pack, loaded, pack_options))
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


def _prepare(packs: Pack | Iterable[Pack], files: Mapping[str, str], select: Iterable[str]) -> tuple[Job, Project]:
    registry = Registry((packs,) if isinstance(packs, Pack) else tuple(packs))
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
        return load_config(Path(folder))[0].unplaced


def check_pack(pack: Pack) -> None:
    """Assert that the examples of all rules of a pack are correct, and that its migrations can be imported; see
    :func:`check_examples`.

    Raises:
        AssertionError: saying which rule or example does not hold.
        AuthorError: the migrations are badly made.
    """
    pack.all_migrations()
    for rule in pack.rules:
        check_examples(pack, rule)


def check_examples(pack: Pack, rule: Rule) -> None:
    """Assert that a rule's page has Bad and Good examples, that it fires on each Bad one and on no Good one,
    and that each of its fixes cures its finding.

    Raises:
        AssertionError: saying which example does not hold.
    """
    found = examples(rule.doc)
    where = f"{rule.code}{at(rule.check)}"
    for kind in ("Bad", "Good"):
        assert any(item.kind == kind.lower() for item in found), f"{where}: its docstring has no `{kind}:` example"
    for number, example in enumerate(found, 1):
        _check_example(pack, rule, example, f"{where}: example {number} ({example.kind})")


def _check_example(pack: Pack, rule: Rule, example: Example, where: str) -> None:
    try:
        files = pack.example(example.fences)
    except ValueError as error:
        raise AssertionError(f"{where}: {error}") from None
    linted = lint_files(pack, files, [rule.code])
    codes = [item for item in linted.codes() if item == rule.code]
    crashes = [item.message for item in linted.diagnostics if item.code == "OPS900"]
    assert not crashes, f"{where}: {crashes[0]}"
    if example.kind == "good":
        assert not codes, f"{where}: {[item.message for item in linted.diagnostics]}"
        return
    assert codes, f"{where}: the rule does not fire{_why(pack, rule, linted)}"
    for item in linted.diagnostics:
        source = linted.project.source(item.place.path)
        inside = source is not None and item.place.span.end <= len(source.text)
        assert inside, f"{where}: the place of a finding is not in its file: {item.place}"
    _check_fixes(pack, rule, files, linted, where)


def _why(pack: Pack, rule: Rule, linted: Linted) -> str:
    """The reason why a rule may not have run: no pack found anything, or no subject of its type."""
    project = Project(linted.project.workspace)
    options = pack.options()
    if not finds(pack, project, options):
        return f"; `detect` of the pack `{pack.name}` returns False for {', '.join(project.workspace.files)}"
    loaded = loaded_by(pack, project, options)
    joint = (item for make in loaded.joint for item in make(None))
    kinds = {type(item) for item in (*loaded.everything(), *joint)}
    if rule.subject is None or any(issubclass(kind, rule.subject) for kind in kinds):
        return ""
    names = ", ".join(sorted(f"`{kind.__name__}`" for kind in kinds)) or "nothing"
    return f": it takes `{rule.subject.__name__}`, and `load` gives {names}"


def _check_fixes(pack: Pack, rule: Rule, files: Mapping[str, str], linted: Linted, where: str) -> None:
    fixes = [item.fix for item in linted.diagnostics if item.fix is not None]
    assert not fixes or rule.fixable, f"{where}: a fix, but `@rule` does not say fixable="
    if fixes:
        texts, after = fix_files([pack], files, [rule.code], unsafe=True)
        assert texts, f"{where}: the fix changes nothing"
        left = [item for item in after.diagnostics if item.code == rule.code and item.fix is not None]
        assert not left, f"{where}: the fix does not cure it: {left[0].message}"

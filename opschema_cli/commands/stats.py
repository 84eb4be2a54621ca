"""``opschema stats``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import click
import msgspec

from opschema_cli.cache import decoded
from opschema_cli.commands.output import WHAT_IS_FOUND, ProgressBar, report_broken, report_missing, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.commands.revisions import asked_of, revision_key, revision_of
from opschema_cli.errors import EXIT_CLEAN
from opschema_cli.git_objects import history, is_shallow
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.phrases import count
from opschema_cli.project import Project
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.statistics import FORMATS, Revision, Row, Statistics, load_writer, rows_of
from opschema_cli.root import check_output
from opschema_cli.session import Session, path_filter
from opschema_cli.workspace import Asked, Workspace

_PATH = click.Path(path_type=Path)
_KIND = "findings"


class _Stored(msgspec.Struct, array_like=True):
    asked: Asked
    rows: list[Row]


class StatsOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema stats``."""

    paths: tuple[Path, ...]
    history: int
    since: str
    output_format: str
    output_file: Path | None
    no_plugins: bool


@click.command(short_help="Count findings by rule, pack and file, now and over the git history.")
@click.argument("paths", nargs=-1, type=_PATH)
@click.option("--history", type=click.IntRange(0), default=0, metavar="N", help="Also count the last N commits.")
@click.option(
    "--since", default="", metavar="REV", help="With --history: spread the N commits evenly over those since REV."
)
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output-file", type=_PATH, help="Write the report to this file.")
@no_plugins_option
def stats(**options: object) -> int:
    """Count the findings below PATHS (default: all) by rule, pack and file, including those in the baseline.

    With --history the same rules count the findings of earlier commits, with the configuration of the tree. Commits are read
    from git's objects; nothing is checked out. Always exits with 0 unless something cannot be read.
    """
    chosen = StatsOptions(**options)  # type: ignore[arg-type]
    if chosen.since and not chosen.history:
        raise click.UsageError("--since goes with --history N")
    gc.disable()  # see `opschema lint`
    start = chosen.paths[0] if chosen.paths else Path.cwd()
    with closing(open_workspace(start, no_plugins=chosen.no_plugins)) as session:
        if chosen.output_file is not None:
            check_output(chosen.output_file, session.root)
        keeps = _filter(session, chosen.paths)
        quiet = chosen.output_format != "text"
        rows = _count(session, session.workspace, "the tree", quiet=quiet)
        past = _history(session, chosen, keeps, quiet=quiet)
        found = Statistics(session.root.name, keeps(rows), past)
        write_text(load_writer(chosen.output_format)(found), chosen.output_file)
    return EXIT_CLEAN


def _filter(session: Session, paths: Sequence[Path]) -> Callable[[Iterable[Row]], list[Row]]:
    """Return a function that keeps the findings below some paths, including those in files that only a commit has.

    Raises:
        OpschemaError: a path does not exist or lies outside the workspace.
    """
    path_filter(session, paths)
    names = [session.workspace.relative(path) for path in paths]
    if not names or "." in names:
        return list
    folders = tuple(f"{name}/" for name in names)
    return lambda rows: [row for row in rows if row.path in names or row.path.startswith(folders)]


def _history(
    session: Session, options: StatsOptions, keeps: Callable[[Iterable[Row]], list[Row]], *, quiet: bool
) -> list[Revision]:
    """The findings of commits."""
    if not options.history:
        return []
    commits = history(session.root, options.history, options.since)
    if len(commits) < options.history:
        since = f" since {visible(options.since)}" if options.since else ""
        hint = "; the clone is shallow" if is_shallow(session.root) else ""
        click.echo(f"opschema: files here changed in only {count(len(commits), 'commit')}{since}{hint}", err=True)
    return [Revision(commit, time, keeps(_at(session, commit, quiet=quiet))) for commit, time in commits]


def _at(session: Session, commit: str, *, quiet: bool) -> list[Row]:
    """The findings of a commit, from the cache if it was counted before."""
    key = revision_key(session, commit)
    stored = decoded(session.cache.get(_KIND, [key]).get(key), _Stored)
    with closing(revision_of(session, commit)) as workspace:
        if stored is not None and workspace.ask_again(stored.asked) == []:
            return stored.rows
        rows = _count(session, workspace, commit[:10], quiet=quiet, key=key)
    gc.collect()
    return rows


def _count(session: Session, workspace: Workspace, label: str, *, quiet: bool, key: str = "") -> list[Row]:
    """Lint a workspace without a baseline; a complete result is cached under ``key``."""
    with ProgressBar(f"reading {label}", "files", enabled=not quiet) as progress:
        project = Project(workspace, session.cache, lambda: session.parsers, progress, session.code_stamp)
        registry = session.registry_for(project, prefetch=True)
        job = Job(registry, resolve_settings(session.config, registry), stamp=session.code_stamp)
        outcome = run(job, project)
        rows = rows_of(outcome.diagnostics, registry.owners)
    project.save_readings()
    if not key:
        if outcome.nothing:
            click.echo(f"opschema: nothing to lint in {session.root}; {WHAT_IS_FOUND}", err=True)
        report_broken(registry)
        report_missing(project)
    elif not project.missing and not registry.broken:
        session.cache.put(_KIND, {key: msgspec.msgpack.encode(_Stored(asked_of(workspace), rows))})
    return rows

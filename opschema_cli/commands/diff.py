"""``opschema diff``."""

from __future__ import annotations

import datetime
import gc
import io
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import get_args

import click
import msgspec

from opschema_cli.cache import decoded
from opschema_cli.commands.diff_comparison import comparison
from opschema_cli.commands.diff_refusals import refusals, with_refusals
from opschema_cli.commands.diff_report import Found, Sides, allowance_findings, problems_of, report_of, stale_lock
from opschema_cli.commands.diff_sides import TableSide, read_ahead, read_lock_file, read_revision, read_tree, sources_of
from opschema_cli.commands.output import write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.diff.allowed import without_allowed
from opschema_cli.diff.entries import Entry
from opschema_cli.diff.lock import LOCK_NAME, render_lock
from opschema_cli.diff.model import Level
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_USAGE, OpschemaError
from opschema_cli.git_objects import common_commit, find_commit, merge_base
from opschema_cli.gitignore import IgnoreSpec, glob_spec
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.phrases import count
from opschema_cli.reporters import FORMATS, Report, load_writer
from opschema_cli.root import check_output
from opschema_cli.session import Session

MARKDOWN = "markdown"

_ANNOTATING = ("sarif", "github", "gitlab", "junit")
"""Formats whose readers show findings beside the files of the tree."""

_RENAMING = "renaming"

_PATH = click.Path(path_type=Path)


class DiffOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema diff``."""

    revision: str
    against: str
    level: Level | None
    show_all: bool
    show_unresolved: bool
    output_format: str
    output_file: Path | None
    no_plugins: bool
    lock: bool

    @property
    def shows_all(self) -> bool:
        """Whether to list changes that affect nobody."""
        return self.show_all or self.output_format == MARKDOWN


@click.command(short_help="List what changed for users of the operators since another revision.")
@click.argument("revision", default="", metavar="[REV]")
@click.option(
    "--against", default="", metavar="REV|DIR|FILE", help="Compare with a revision, another folder or a lock file."
)
@click.option("--lock", is_flag=True, help=f"Write the operators of the tree to {LOCK_NAME}, and compare nothing.")
@click.option(
    "--level",
    type=click.Choice(get_args(Level)),
    help="Changes that are breaking: all (schema), those that affect callers or saved graphs (callers, the default), or saved "
    "graphs only (serialised).",
)
@click.option("--all", "show_all", is_flag=True, help="Also list changes that affect nobody.")
@click.option("--show-unresolved", is_flag=True, help="List what could not be compared, with the reasons.")
@click.option("--output-format", type=click.Choice((*FORMATS, MARKDOWN)), default="text", show_default=True)
@click.option("-o", "--output-file", type=_PATH, help="Write the report to this file.")
@no_plugins_option
def diff(**options: object) -> int:
    """Compare the operators of the tree with those of revision REV, and list the changes of their contracts.

    REV defaults to the merge base of HEAD and the main branch. `A..B` compares two revisions, `A...B` their merge base with B.
    Revisions are read from git's objects; nothing is checked out. Exits with 1 for breaking changes, with 2 if a file of one side
    could not be read.
    """
    chosen = DiffOptions(**options)  # type: ignore[arg-type]
    started = time.perf_counter()
    gc.disable()  # see `opschema lint`
    with closing(open_workspace(Path.cwd(), no_plugins=chosen.no_plugins)) as session:
        if chosen.output_file is not None:
            check_output(chosen.output_file, session.root)
        if chosen.lock:
            return _write_lock(session)
        old, new = _sides(session, chosen)
        found = _compared(session, old, new, chosen)
        in_tree = chosen.output_format in _ANNOTATING
        sides = Sides(old, new, _renaming(session, found), in_tree)
        sources = sources_of((old, new))
        report = report_of(found, sides, _level(session, chosen), sources, time.perf_counter() - started)
        _print(report, chosen, old.label, has_operators=bool(old.entries))
    return _exit_code(found, report)


def _sides(session: Session, options: DiffOptions) -> tuple[TableSide, TableSide]:
    """The old and the new side."""
    if options.revision and options.against:
        raise click.UsageError("give REV or --against, not both")
    quiet = options.output_format != "text"
    wanted = options.against or options.revision
    path = Path(options.against)
    if options.against and path.is_file():
        tree = read_tree(session, quiet=quiet)
        return read_lock_file(session, path, tree), tree
    if options.against and path.is_dir():
        other = open_workspace(path, no_plugins=options.no_plugins)
        session.helpers.callback(other.close)
        return read_tree(other, options.against, quiet=quiet), read_tree(session, quiet=quiet)
    first, dots, second = wanted.partition("..")
    if second.startswith("."):
        second = second[1:]
        first = common_commit(session.root, first or "HEAD", second or "HEAD")
    commit, label = _old_revision(session, first, "file, folder or commit" if options.against else "commit")
    wait = read_ahead(session, commit, label)
    if not dots:
        new = read_tree(session, quiet=quiet)
    else:
        new = read_revision(session, find_commit(session.root, second or "HEAD"), second or "HEAD", quiet=quiet)
    wait()
    return read_revision(session, commit, label, quiet=quiet), new


def _old_revision(session: Session, revision: str, noun: str) -> tuple[str, str]:
    """A commit and its label; by default the merge base with the main branch."""
    if not revision:
        main = session.config.diff.main_branch
        if main:
            find_commit(session.root, "HEAD")  # an error about the repository is none of the configuration
        with session.config.placed(main or None):
            commit, branch = merge_base(session.root, main)
        return commit, f"{branch} {commit[:10]}"
    commit = find_commit(session.root, revision, noun)
    return commit, revision if commit.startswith(revision) else f"{revision} {commit[:10]}"


def _write_lock(session: Session) -> int:
    """Write the lock file of the tree."""
    side = read_tree(session)
    if side.problems:
        places = ", ".join(sorted({item.place.path for item in side.problems}))
        raise OpschemaError(f"no lock file is written, since these files cannot be read: {places}")
    entries = _public(session, side)
    target = session.root / LOCK_NAME
    check_output(target, session.root)
    write_text(render_lock(entries), target)
    click.echo(f"wrote {LOCK_NAME}: {count(len(entries), 'operator')}")
    return EXIT_CLEAN


def _compared(session: Session, old: TableSide, new: TableSide, options: DiffOptions) -> Found:
    problems = problems_of(old, new)
    if not old.entries and not new.entries and not problems:
        raise OpschemaError(f"nothing to compare in {session.root}: opschema reads no operator on either side")
    before, now = _public(session, old), _public(session, new)
    result = comparison(session, old, new, before, now)
    changed = with_refusals(result.changes, refusals(session, old, new), before)
    level = _level(session, options)
    breaks = [item.breaks(level) for item in changed]
    allowed = session.config.diff.allow
    with session.config.placed():
        judged = without_allowed(changed, allowed, breaks, datetime.datetime.now(datetime.timezone.utc).date())
    changes = [item for item in judged.changes if item.hits or options.shows_all]
    path, text = _configuration(session)
    notes = allowance_findings(judged.unused, judged.expired, path, text)
    if old.project is new.project and render_lock(now) != render_lock(before):
        notes.append(stale_lock(old.label))
    return Found(changes, result.unclear, result.operators, judged.accepted, notes, problems)


def _public(session: Session, side: TableSide) -> list[Entry]:
    """The operators of a side that are promised to others."""
    with session.config.placed("private"):
        private = glob_spec(session.config.diff.private, "diff.private")
    return [item for item in side.entries if not _is_private(item, private)]


def _is_private(item: Entry, private: IgnoreSpec) -> bool:
    return item.place is not None and private.ignores(item.place.path)


def _configuration(session: Session) -> tuple[str, str]:
    """The file of the configuration, relative to the root, and its text."""
    if session.config_path is None:
        return "", ""
    path = session.workspace.relative(session.config_path)
    return path, session.workspace.source(path).text


def _renaming(session: Session, found: Found) -> frozenset[str]:
    """The packs with the migration `rename-op`, of those in which an operator was renamed. To import migrations takes long."""
    packs = {item.pack for item in found.changes if item.kind == "operator-renamed"}
    if not packs:
        return frozenset()
    key = f"{session.code_stamp} {' '.join(sorted(packs))}"
    known = decoded(session.cache.get(_RENAMING, [key]).get(key), list[str])
    if known is None:
        used = session.registry.narrowed(packs).packs
        known = [pack.name for pack in used if any(item.name == "rename-op" for item in pack.all_migrations())]
        session.cache.put(_RENAMING, {key: msgspec.msgpack.encode(known)})
    return frozenset(known)


def _level(session: Session, options: DiffOptions) -> Level:
    return options.level or session.config.diff.level


def _exit_code(found: Found, report: Report) -> int:
    if found.problems:
        return EXIT_USAGE
    codes = {item.code for item in found.problems}
    breaking = any(item.severity is Severity.ERROR and item.code not in codes for item in report.diagnostics)
    return EXIT_FINDINGS if breaking else EXIT_CLEAN


def _print(report: Report, options: DiffOptions, label: str, *, has_operators: bool) -> None:
    if options.output_format == MARKDOWN:
        from opschema_cli.reporters.markdown import write as changelog

        write_text(changelog(report, label), options.output_file)
        return
    if options.output_format != "text":
        write_text(load_writer(options.output_format)(report), options.output_file)
        return
    from opschema_cli.reporters.text import write

    shown = report if options.show_unresolved else msgspec.structs.replace(report, unresolved=())
    stream = io.StringIO() if options.output_file is not None else sys.stdout
    write(shown, stream)
    stream.write(f"Compared with {label}{'' if has_operators else ', which has no operator'}.\n")
    if isinstance(stream, io.StringIO):
        write_text(stream.getvalue(), options.output_file)

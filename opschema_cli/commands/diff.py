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

from opschema_cli.commands.diff_doubts import doubt_of
from opschema_cli.commands.diff_report import Found, Labels, allowance_findings, problems_of, report_of
from opschema_cli.commands.diff_sides import TableSide, read_revision, read_tree, sources_of
from opschema_cli.commands.output import write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.diff.allowed import without_allowed
from opschema_cli.diff.compare import compare
from opschema_cli.diff.entries import Entry
from opschema_cli.diff.model import Level
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_USAGE, OpschemaError
from opschema_cli.git_objects import find_commit, merge_base
from opschema_cli.gitignore import IgnoreSpec, glob_spec
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.reporters import FORMATS, Report, load_writer
from opschema_cli.root import check_output
from opschema_cli.session import Session

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


@click.command(short_help="List what changed for users of the operators since another revision.")
@click.argument("revision", default="", metavar="[REV]")
@click.option("--against", default="", metavar="REV|DIR", help="Compare with a revision or another folder.")
@click.option(
    "--level",
    type=click.Choice(get_args(Level)),
    help="Changes that are breaking: all (schema), those that affect callers or saved graphs (callers, the default), or saved "
    "graphs only (serialised).",
)
@click.option("--all", "show_all", is_flag=True, help="Also list changes that affect nobody.")
@click.option("--show-unresolved", is_flag=True, help="List what could not be compared, with the reasons.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output-file", type=_PATH, help="Write the report to this file.")
@no_plugins_option
def diff(**options: object) -> int:
    """Compare the operators of the tree with those of revision REV, and list the changes of their contracts.

    REV defaults to the merge base of HEAD and the main branch; `A..B` compares two revisions. Revisions are read from git's
    objects; nothing is checked out. Exits with 1 for breaking changes, with 2 if a file of one side could not be read.
    """
    chosen = DiffOptions(**options)  # type: ignore[arg-type]
    started = time.perf_counter()
    gc.disable()  # see `opschema lint`
    with closing(open_workspace(Path.cwd(), no_plugins=chosen.no_plugins)) as session:
        if chosen.output_file is not None:
            check_output(chosen.output_file, session.root)
        old, new = _sides(session, chosen)
        found = _compared(session, old, new, chosen)
        labels = Labels(old.label, new.label)
        report = report_of(
            found, labels, _level(session, chosen), new, sources_of((old, new)), time.perf_counter() - started
        )
        _print(report, chosen, old.label)
    return _exit_code(found, report)


def _sides(session: Session, options: DiffOptions) -> tuple[TableSide, TableSide]:
    """The old and the new side."""
    if options.revision and options.against:
        raise click.UsageError("give REV or --against, not both")
    wanted = options.against or options.revision
    quiet = options.output_format != "text"
    if Path(wanted).is_dir() and options.against:
        other = open_workspace(Path(wanted), no_plugins=options.no_plugins)
        session.helpers.callback(other.close)
        return read_tree(other, wanted, quiet=quiet), read_tree(session, quiet=quiet)
    first, dots, second = wanted.partition("..")
    if not first:
        commit, branch = merge_base(session.root, session.config.diff.main_branch)
        first, label = commit, f"{branch} {commit[:10]}"
    else:
        commit = find_commit(session.root, first)
        label = first if commit.startswith(first) else f"{first} {commit[:10]}"
    if dots:
        newest = find_commit(session.root, second or "HEAD")
        new = read_revision(session, newest, second or "HEAD", quiet=quiet)
    else:
        new = read_tree(session, quiet=quiet)
    return read_revision(session, commit, label, quiet=quiet), new


def _compared(session: Session, old: TableSide, new: TableSide, options: DiffOptions) -> Found:
    if not old.entries and not new.entries:
        raise OpschemaError(f"nothing to compare in {session.root}: opschema reads no operator on either side")
    private = glob_spec(session.config.diff.private, "diff.private")
    public = [[item for item in side.entries if not _is_private(item, private)] for side in (old, new)]
    result = compare(public[0], public[1], doubt_of(new))
    level = _level(session, options)
    breaks = [item.breaks(level) for item in result.changes]
    allowed = session.config.diff.allow
    judged = without_allowed(result.changes, allowed, breaks, datetime.datetime.now(datetime.timezone.utc).date())
    changes = [item for item in judged.changes if item.hits or options.show_all]
    path, text = _configuration(session)
    notes = allowance_findings(judged.unused, judged.expired, path, text)
    return Found(changes, result.unclear, result.operators, judged.accepted, notes, problems_of(old, new))


def _is_private(item: Entry, private: IgnoreSpec) -> bool:
    return item.place is not None and private.ignores(item.place.path)


def _configuration(session: Session) -> tuple[str, str]:
    """The file of the configuration, relative to the root, and its text."""
    if session.config_path is None:
        return "", ""
    path = session.workspace.relative(session.config_path)
    return path, session.workspace.source(path).text


def _level(session: Session, options: DiffOptions) -> Level:
    return options.level or session.config.diff.level


def _exit_code(found: Found, report: Report) -> int:
    if found.problems:
        return EXIT_USAGE
    codes = {item.code for item in found.problems}
    breaking = any(item.severity is Severity.ERROR and item.code not in codes for item in report.diagnostics)
    return EXIT_FINDINGS if breaking else EXIT_CLEAN


def _print(report: Report, options: DiffOptions, label: str) -> None:
    if options.output_format != "text":
        write_text(load_writer(options.output_format)(report), options.output_file)
        return
    from opschema_cli.reporters.text import write

    shown = report if options.show_unresolved else msgspec.structs.replace(report, unresolved=())
    stream = io.StringIO() if options.output_file is not None else sys.stdout
    write(shown, stream)
    stream.write(f"Compared with {label}.\n")
    if isinstance(stream, io.StringIO):
        write_text(stream.getvalue(), options.output_file)

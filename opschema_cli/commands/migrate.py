"""``opschema migrate``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import click
import msgspec

from opschema_cli.commands.completion import complete_migrations
from opschema_cli.commands.migrate_report import print_report, report_of
from opschema_cli.commands.migrate_work import SHOWN_FILES, MigrateOptions, Work, print_problems, problems_of
from opschema_cli.commands.output import ProgressBar, write_page, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.commands.pruned_baseline import pruned_baseline
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERNAL, EXIT_USAGE, OpschemaError
from opschema_cli.git import uncommitted
from opschema_cli.lint.pack import Pack
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import MigrationFailure, Result, Task, find, migrate_all, not_seen, why_idle
from opschema_cli.migrate.migration import Migration
from opschema_cli.migrate.options import missing
from opschema_cli.project import UNREADABLE
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.migrations import Listed
from opschema_cli.root import find_root
from opschema_cli.session import Session
from opschema_cli.transaction.apply import recover
from opschema_cli.verify.model import Limits
from opschema_cli.workspace import ReadError
from opschema_cli.write import write_all


@click.command(short_help="Rewrite the entire workspace: list, show, apply or check migrations.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_migrations)
@click.option(
    "--list", "list_only", is_flag=True, help="List the migrations that apply here; the default without NAME."
)
@click.option("--diff", is_flag=True, help="Print what would change; the default with NAME.")
@click.option("--apply", is_flag=True, help="Write the changes: all files, or none.")
@click.option("--check", is_flag=True, help="Exit 1 if there is something to migrate, 2 if files could not be read.")
@click.option("--recover", is_flag=True, help="Complete or discard the changes of a killed run, and exit.")
@click.option("--explain", is_flag=True, help="Print the page of each NAME: what it does, its options.")
@click.option("--only", multiple=True, metavar="PLACE", help="Migrate only this op, glob of ops, path or path:line.")
@click.option("--skip", multiple=True, metavar="PLACE", help="Do not migrate this op, glob of ops, path or path:line.")
@click.option("-o", "--option", multiple=True, metavar="NAME=VALUE", help="An option of the migration.")
@click.option("--verify", is_flag=True, help="With --apply: run the ops first, and write only if verification passes.")
@click.option(
    "--cells", type=click.IntRange(1), help=f"With --verify: maximum number of cells of one op [{Limits().cells}]."
)
@click.option(
    "--allow-unverified", is_flag=True, help="With --verify: write even if nothing of an op could be checked."
)
@click.option("--allow-dirty", is_flag=True, help="With --apply: write even if git has uncommitted changes.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--no-cache", is_flag=True, help="Read and parse all files again.")
@no_plugins_option
@click.option("--jobs", type=click.IntRange(1), help="Number of processes that parse [number of cores].")
def migrate(**options: object) -> int:
    """Rewrite the workspace with the migrations NAME, one after the other.

    Without NAME, list the migrations that apply here, and why the others do not. Places that you must change by hand are
    reported.
    """
    chosen = MigrateOptions(**options)  # type: ignore[arg-type]
    try:
        return _migrate(chosen)
    except MigrationFailure as error:
        click.echo(f"opschema: {visible(str(error))}; nothing was written", err=True)
        return EXIT_INTERNAL


def _migrate(options: MigrateOptions) -> int:
    mode = options.mode
    _check_usage(mode, options)
    # Many small objects that live until the end: see `opschema lint`.
    gc.disable()
    if mode == "recover":
        click.echo(recover(find_root(Path.cwd())) or "nothing was left unfinished here")
        return EXIT_CLEAN
    with closing(
        open_workspace(
            Path.cwd(),
            no_plugins=options.no_plugins,
            cache=not options.no_cache,
            jobs=options.jobs,
            writes=mode == "apply",
        )
    ) as session:
        return _migrate_in(session, options, mode)


def _migrate_in(
    session: Session, options: MigrateOptions, mode: Literal["list", "explain", "diff", "apply", "check"]
) -> int:
    with ProgressBar("reading", "files", enabled=options.output_format == "text") as progress:
        work = Work.of(session, session.project(progress=progress), options)
        if mode == "list":
            return _list(work)
        if mode == "explain":
            return _explain(work)
        draft, results = _run(work)
    if mode == "apply" and draft.changes:
        _check_tree(session, draft, allow_dirty=options.allow_dirty)
        if options.verify and not _verified(session, draft, results, options):
            click.echo("opschema: nothing was written: see above", err=True)
            return EXIT_FINDINGS
        texts = {change.path: change.after for change in draft.changes}
        write_all(session.workspace, {**texts, **pruned_baseline(session, texts)}, draft.origins)
    report = report_of(draft, results, mode, options.asked)
    print_report(report, options)
    if mode == "check" and _is_blind(work, draft, results):
        return EXIT_USAGE
    return EXIT_FINDINGS if report.sites("pending") else EXIT_CLEAN


def _is_blind(work: Work, draft: Draft, results: Sequence[Result]) -> bool:
    """Whether a migration could not see all the code that it should: a parser is missing, or a file could not be read."""
    settings = work.ground.settings
    return any(not_seen(draft, item.migration) for item in results) or any(
        item.code in settings.enabled and not settings.ignored_in(item.place.path, item.code)
        for item in problems_of(work)
    )


def _check_usage(mode: str, options: MigrateOptions) -> None:
    if mode in ("diff", "apply", "check", "explain") and not options.names:
        raise click.UsageError(f"--{mode} needs the NAME of a migration; `opschema migrate` lists them")
    of_one = bool(options.only or options.skip or options.option)
    if mode == "list" and not options.list_only and of_one:
        raise click.UsageError(
            "--only, --skip and --option need the NAME of a migration; `opschema migrate` lists them"
        )
    if mode in ("list", "recover") and (options.names or of_one):
        raise click.UsageError(f"--{mode} takes neither a NAME nor options of one")
    if mode == "explain" and of_one:
        raise click.UsageError("--explain takes no options of a migration")
    if options.output_format != "text" and mode in ("recover", "explain"):
        raise click.UsageError(f"--{mode} has no --output-format {options.output_format}")
    for name, asked in (("--allow-unverified", options.allow_unverified), ("--cells", options.cells is not None)):
        if asked and not options.verify:
            raise click.UsageError(f"{name} goes with --verify")
    for name, given in (("--allow-dirty", options.allow_dirty), ("--verify", options.verify)):
        if given and mode != "apply":
            raise click.UsageError(f"{name} goes with --apply")


def _list(work: Work) -> int:
    from opschema_cli.reporters.migrations import json, text
    from opschema_cli.reporters.text import open_console

    draft = work.draft()
    found = [_listed(work, draft, pack, item) for pack, item in work.known().values()]
    print_problems(work)
    elsewhere = [pack.name for pack in work.ground.registry.unused]
    if work.options.output_format == "json":
        write_text(json.write_list(found, elsewhere), None)
    else:
        text.write_list(found, [pack.name for pack in work.packs], elsewhere, open_console(sys.stdout))
    return EXIT_CLEAN


def _explain(work: Work) -> int:
    from opschema_cli.migrate.docs import migration_page

    write_page("\n".join(migration_page(item) for item in work.chosen()))
    return EXIT_CLEAN


def _listed(work: Work, draft: Draft, pack: Pack, item: Migration) -> Listed:
    options = [field.encode_name for field in msgspec.structs.fields(item.options)]
    needs = missing(item)
    if needs:
        return Listed(item.name, item.summary, None, "", needs, options)
    try:
        sites = find(draft, Task(item, item.options(), work.loaders[pack.name]))
    except OpschemaError as error:
        return Listed(item.name, item.summary, None, str(error), needs, options)
    return Listed(item.name, item.summary, len(sites), "" if sites else why_idle(draft, item), needs, options)


def _run(work: Work) -> tuple[Draft, list[Result]]:
    draft = work.draft()
    results = migrate_all(draft, work.tasks(), work.ground)
    work.ground.choice.check()
    print_problems(work)
    return draft, results


def _verified(session: Session, draft: Draft, results: Sequence[Result], options: MigrateOptions) -> bool:
    """Whether the ops that the draft changes still compute the same."""
    # Not at the top: it needs PyTorch, and nothing else here does.
    from opschema_cli.commands.verified import verify_draft

    return verify_draft(session, draft, results, cells=options.cells, allow_unverified=options.allow_unverified)


def _check_tree(session: Session, draft: Draft, *, allow_dirty: bool) -> None:
    """Check that the draft may be written.

    Raises:
        OpschemaError: a file could not be looked at, or git has changes that are not committed.
    """
    unseen = [path for code, path in sorted(draft.project.problems) if code == UNREADABLE and _is_shut(session, path)]
    if unseen:
        raise OpschemaError(f"nothing was written: {unseen[0]} cannot be read, so half of the change may lie there")
    dirty = [] if allow_dirty else uncommitted(session.root, {change.path for change in draft.changes})
    if dirty is None:
        click.echo("opschema: this is not in git, so only a copy of yours could bring the old files back", err=True)
    elif dirty:
        more = f" and {len(dirty) - SHOWN_FILES} more" if len(dirty) > SHOWN_FILES else ""
        hint = "commit or stash them first, or give --allow-dirty"
        raise OpschemaError(
            f"nothing was written: git has uncommitted changes in {', '.join(dirty[:SHOWN_FILES])}{more}; {hint}"
        )


def _is_shut(session: Session, path: str) -> bool:
    """Whether a file of the workspace exists but its bytes cannot be read: it leads out of the workspace, or permission is
    denied.
    """
    try:
        session.workspace.data(path)
    except ReadError:
        return path in session.workspace.file_set
    return False

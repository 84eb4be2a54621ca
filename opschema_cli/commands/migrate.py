"""``opschema migrate``.

It is one module because most of it declares the command's options and passes them on.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeAlias

import click
import msgspec

from opschema_cli.commands.output import WHAT_IS_FOUND, ProgressBar, report_broken, write_page, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERNAL, EXIT_USAGE, OpschemaError
from opschema_cli.git import uncommitted
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.pack_calls import loaded_by
from opschema_cli.lint.recognition import Recognition
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Change, Draft
from opschema_cli.migrate.engine import (
    Ground,
    MigrationFailure,
    Result,
    Task,
    find,
    load_migrations,
    migrate_all,
    not_seen,
    why_idle,
)
from opschema_cli.migrate.migration import Migration
from opschema_cli.migrate.options import fill, missing
from opschema_cli.project import UNREADABLE, Project
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.migrations import (
    FileReport,
    Listed,
    MigrationReport,
    NoteReport,
    RunReport,
    SiteReport,
)
from opschema_cli.root import find_root
from opschema_cli.session import Session
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_cli.transaction.apply import recover
from opschema_cli.verify.model import Limits
from opschema_cli.workspace import ReadError
from opschema_cli.write import write_all

_SHOWN_FILES = 5


Mode: TypeAlias = Literal["list", "diff", "apply", "check", "recover", "explain"]


class MigrateOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema migrate``."""

    names: tuple[str, ...]
    list_only: bool
    diff: bool
    apply: bool
    check: bool
    recover: bool
    explain: bool
    only: tuple[str, ...]
    skip: tuple[str, ...]
    option: tuple[str, ...]
    verify: bool
    cells: int | None
    allow_unverified: bool
    allow_dirty: bool
    output_format: str
    no_cache: bool
    no_plugins: bool
    jobs: int | None

    @property
    def mode(self) -> Mode:
        """The requested mode.

        Raises:
            click.UsageError: more than one thing.
        """
        flags = {"list": self.list_only, "diff": self.diff, "apply": self.apply, "check": self.check}
        flags |= {"recover": self.recover, "explain": self.explain}
        asked = [name for name, given in flags.items() if given]
        if len(asked) > 1:
            raise click.UsageError(f"choose one of {' and '.join(f'--{name}' for name in asked)}")
        return asked[0] if asked else "diff" if self.names else "list"  # type: ignore[return-value]

    @property
    def asked(self) -> list[str]:
        """The migrations, and what was told about them, as on the command line."""
        told = {"--only": self.only, "--skip": self.skip, "-o": self.option}
        return [*self.names, *(word for name, values in told.items() for value in values for word in (name, value))]


@click.command(short_help="Rewrite the entire workspace: list, show, apply or check migrations.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
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
@click.option(
    "--verify", is_flag=True, help="With --apply: run the ops first, and write only if they still compute the same."
)
@click.option("--cells", type=click.IntRange(1), help=f"With --verify: most cells of one op [{Limits().cells}].")
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
        work = _Work.of(session, session.project(progress=progress), options)
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
        write_all(session.workspace, {change.path: change.after for change in draft.changes}, draft.origins)
    report = _report(draft, results, mode, options.asked)
    _print(report, options)
    if mode == "check" and _is_blind(work, draft, results):
        return EXIT_USAGE
    return EXIT_FINDINGS if report.sites("pending") else EXIT_CLEAN


def _is_blind(work: _Work, draft: Draft, results: Sequence[Result]) -> bool:
    """Whether a migration could not look at all that it should have: a parser is missing, or a file could not be read."""
    settings = work.ground.settings
    return any(not_seen(draft, item.migration) for item in results) or any(
        item.code in settings.enabled and not settings.ignored_in(item.place.path, item.code)
        for item in _problems(work)
    )


def _check_usage(mode: str, options: MigrateOptions) -> None:
    if mode in ("diff", "apply", "check", "explain") and not options.names:
        raise click.UsageError(f"--{mode} needs the NAME of a migration; `opschema migrate` lists them")
    if mode in ("list", "recover") and (options.names or options.only or options.skip or options.option):
        raise click.UsageError(f"--{mode} takes neither a NAME nor options of one")
    if mode == "explain" and (options.only or options.skip or options.option):
        raise click.UsageError("--explain takes no options of a migration")
    if options.output_format != "text" and mode in ("recover", "explain"):
        raise click.UsageError(f"--{mode} has no --output-format {options.output_format}")
    for name, asked in (("--allow-unverified", options.allow_unverified), ("--cells", options.cells is not None)):
        if asked and not options.verify:
            raise click.UsageError(f"{name} goes with --verify")
    for name, given in (("--allow-dirty", options.allow_dirty), ("--verify", options.verify)):
        if given and mode != "apply":
            raise click.UsageError(f"{name} goes with --apply")


class _Work(msgspec.Struct, frozen=True):
    """A project, the packs that find something in it with what loads their subjects, and what was asked."""

    project: Project
    packs: Sequence[Pack]
    loaders: Mapping[str, Callable[[Project], Loaded]]
    ground: Ground
    options: MigrateOptions

    @classmethod
    def of(cls, session: Session, project: Project, options: MigrateOptions) -> _Work:
        registry = session.registry_for(project)
        unknown = set(options.names) - {item.name for pack in registry.packs for item in load_migrations(pack)}
        if unknown:
            begun = {pack.name for pack in session.registry.packs if _begins(pack, unknown)}
            registry = registry.narrowed({*(pack.name for pack in registry.packs), *begun})
        settings = resolve_settings(session.config, registry)
        packs = registry.packs
        registry.check_needed()
        report_broken(registry)
        if not packs:
            click.echo(f"opschema: found nothing to migrate here; {WHAT_IS_FOUND}", err=True)
        choice = Choice(options.only, options.skip, session.workspace.relative(Path.cwd()))
        loaders = {pack.name: _loader(pack, settings.pack_options[pack.name]) for pack in packs}
        return cls(project, packs, loaders, Ground(registry, settings, choice), options)

    def known(self) -> dict[str, tuple[Pack, Migration]]:
        """All migrations of the packs, by name.

        Raises:
            OpschemaError: a pack's migrations cannot be imported, or two packs have one of the same name.
        """
        found: dict[str, tuple[Pack, Migration]] = {}
        for pack in self.packs:
            for item in load_migrations(pack):
                if item.name in found:
                    other, first = found[item.name]
                    places = f"`{other.name}`{first.written} and `{pack.name}`{item.written}"
                    raise OpschemaError(f"two packs have a migration `{item.name}`: {places}; give one another name")
                found[item.name] = (pack, item)
        return found

    def tasks(self) -> list[Task]:
        """The requested migrations, in order.

        Raises:
            OpschemaError: a name or an option is not known, missing or wrong.
        """
        known = self.known()
        chosen = self.chosen()
        values = fill(chosen, self.options.option)
        return [Task(item, values[item.name], self.loaders[known[item.name][0].name]) for item in chosen]

    def chosen(self) -> list[Migration]:
        """The migrations that were named, in order.

        Raises:
            OpschemaError: a name is not known.
        """
        known = self.known()
        return [self._named(name, known)[1] for name in dict.fromkeys(self.options.names)]

    def _named(self, name: str, known: dict[str, tuple[Pack, Migration]]) -> tuple[Pack, Migration]:
        if name not in known:
            hint = did_you_mean(near_name(name, known)) or "; `opschema migrate` lists those that apply"
            raise OpschemaError(f"no migration here is called `{name}`{hint}")
        return known[name]

    def draft(self) -> Draft:
        """A new draft; what loads its subjects comes with the first task."""
        return Draft(self.project, lambda project: Loaded())


def _begins(pack: Pack, names: Container[str]) -> bool:
    """Whether a pack has a migration of one of these names that makes what the pack looks for."""
    return any(item.anywhere and item.name in names for item in load_migrations(pack))


def _loader(pack: Pack, options: object) -> Callable[[Project], Loaded]:
    return lambda project: loaded_by(pack, project, options)


def _list(work: _Work) -> int:
    from opschema_cli.reporters.migrations import json, text
    from opschema_cli.reporters.text import open_console

    draft = work.draft()
    found = [_listed(work, draft, pack, item) for pack, item in work.known().values()]
    _tell_problems(work)
    elsewhere = [pack.name for pack in work.ground.registry.unused]
    if work.options.output_format == "json":
        write_text(json.write_list(found, elsewhere), None)
    else:
        text.write_list(found, elsewhere, open_console(sys.stdout))
    return EXIT_CLEAN


def _explain(work: _Work) -> int:
    from opschema_cli.migrate.docs import migration_page

    write_page("\n".join(migration_page(item) for item in work.chosen()))
    return EXIT_CLEAN


def _listed(work: _Work, draft: Draft, pack: Pack, item: Migration) -> Listed:
    options = [field.encode_name for field in msgspec.structs.fields(item.options)]
    needs = missing(item)
    if needs:
        return Listed(item.name, item.summary, None, "", needs, options)
    try:
        sites = find(draft, Task(item, item.options(), work.loaders[pack.name]))
    except OpschemaError as error:
        return Listed(item.name, item.summary, None, str(error), needs, options)
    return Listed(item.name, item.summary, len(sites), "" if sites else why_idle(draft, item), needs, options)


def _run(work: _Work) -> tuple[Draft, list[Result]]:
    draft = work.draft()
    results = migrate_all(draft, work.tasks(), work.ground)
    work.ground.choice.check()
    _tell_problems(work)
    return draft, results


def _verified(session: Session, draft: Draft, results: Sequence[Result], options: MigrateOptions) -> bool:
    """Whether the ops that the draft touches still compute the same."""
    # Not at the top: it needs PyTorch, and nothing else here does.
    from opschema_cli.commands.verified import verify_draft

    return verify_draft(session, draft, results, cells=options.cells, allow_unverified=options.allow_unverified)


def _check_tree(session: Session, draft: Draft, *, allow_dirty: bool) -> None:
    """See to it that the draft may be written.

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
        more = f" and {len(dirty) - _SHOWN_FILES} more" if len(dirty) > _SHOWN_FILES else ""
        hint = "commit or stash them first, or give --allow-dirty"
        raise OpschemaError(
            f"nothing was written: git has uncommitted changes in {', '.join(dirty[:_SHOWN_FILES])}{more}; {hint}"
        )


def _is_shut(session: Session, path: str) -> bool:
    """Whether a file of the workspace is there, and its bytes are not to be had: it leads out of it, or is closed to us."""
    try:
        session.workspace.data(path)
    except ReadError:
        return path in session.workspace.file_set
    return False


def _problems(work: _Work) -> list[Diagnostic]:
    """Problems of files that a migration needs."""
    project, ground = work.project, work.ground
    project.settle()
    packs = ground.registry.all_packs
    meant = dict.fromkeys((pack.name for pack in packs), project.claimed)
    recognition = Recognition(project, packs, ground.settings.pack_options, meant)
    problems = (item for item in project.problems.values() if recognition.reported(item.place.path))
    return sorted(problems, key=lambda item: (item.place.path, item.message))


def _tell_problems(work: _Work) -> None:
    """Say which files could not be read or parsed: a migration does not see them."""
    found = _problems(work)
    for item in found[:_SHOWN_FILES]:
        click.echo(f"opschema: {visible(f'{item.place.path}: {item.message}')}; no migration sees it", err=True)
    if len(found) > _SHOWN_FILES:
        click.echo(f"opschema: and {len(found) - _SHOWN_FILES} more files", err=True)


def _print(report: RunReport, options: MigrateOptions) -> None:
    from opschema_cli.reporters.migrations import json, text
    from opschema_cli.reporters.text import open_console

    if options.output_format == "json":
        write_text(json.write(report), None)
        return
    if report.mode == "diff" and not sys.stdout.isatty():
        write_text(text.patch(report), None)
    text.write(report, open_console(sys.stdout))


def _report(
    draft: Draft, results: Iterable[Result], mode: Literal["check", "diff", "apply"], asked: Sequence[str]
) -> RunReport:
    """The run as reporters read it; where it was only to be checked, what would change stays untold."""
    if mode == "check":
        return RunReport(
            [MigrationReport(item.migration.name, _sites(item, "pending"), [], [], item.reason) for item in results],
            [],
            mode,
            asked,
        )
    reports = [
        MigrationReport(item.migration.name, _sites(item, "migrated"), _notes(item), _files(item.changes), item.reason)
        for item in results
    ]
    return RunReport(reports, _files(draft.changes), mode, asked)


def _notes(result: Result) -> list[NoteReport]:
    return [NoteReport(left.note.place.path, *left.position, left.note.message) for left in result.notes]


def _sites(result: Result, done: Literal["migrated", "pending"]) -> list[SiteReport]:
    return [
        SiteReport(
            item.site.place.path,
            *item.position,
            item.site.title,
            item.site.ops,
            done if item.status == "migrated" else item.status,
        )
        for item in result.sites
    ]


def _files(changes: Iterable[Change]) -> list[FileReport]:
    return [FileReport(change.path, change.before, change.after) for change in changes]

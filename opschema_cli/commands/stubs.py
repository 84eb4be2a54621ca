"""``opschema stubs``."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeAlias

import click
import msgspec
from msgspec.structs import replace

from opschema_cli.commands.output import ProgressBar, report_broken, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.errors import EXIT_CLEAN, EXIT_FINDINGS, OpschemaError
from opschema_cli.lint.builtin import CRASHED
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.lint.pack import Pack, StubMaker, StubRequest, Stubs, StubsRefused
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import pack_options, resolve_settings
from opschema_cli.phrases import some
from opschema_cli.project import Project
from opschema_cli.reporters import Report, Summary, load_writer
from opschema_cli.reporters.migrations import FileReport
from opschema_cli.reporters.phrases import unchecked
from opschema_cli.session import Session
from opschema_cli.workspace import ReadError, Workspace
from opschema_cli.write import write_all

Mode: TypeAlias = Literal["dry-run", "check", "apply"]
_PATH = click.Path(path_type=Path)
_SHOWN = 5


class StubsOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema stubs``."""

    source: Path | None
    dry_run: bool
    apply: bool
    check: bool
    output_dir: Path | None
    impl_path: Path | None
    kernels: Path | None
    python: str
    output_format: str
    as_json: bool
    no_plugins: bool

    @property
    def json(self) -> bool:
        """Whether the report is for programs."""
        return self.as_json or self.output_format == "json"

    @property
    def mode(self) -> Mode:
        """The requested mode.

        Raises:
            click.UsageError: more than one thing.
        """
        asked: list[Mode] = []
        asked += ["dry-run"] if self.dry_run else []
        asked += ["check"] if self.check else []
        asked += ["apply"] if self.apply else []
        if len(asked) > 1:
            raise click.UsageError(f"choose one of {' and '.join(f'--{name}' for name in asked)}")
        return asked[0] if asked else "dry-run"


@click.command(short_help="Generate a backend's declarations and registrations: show, apply or check them.")
@click.argument("source", required=False, type=_PATH, metavar="[YAML]")
@click.option("--dry-run", is_flag=True, help="Print what would change; the default.")
@click.option("--apply", is_flag=True, help="Write the files that change: all, or none.")
@click.option("--check", is_flag=True, help="Exit 1 if a file would change.")
@click.option(
    "--output-dir", type=_PATH, help="Folder for the files [the folder that they are in, or that of the YAML]."
)
@click.option("--impl-path", type=_PATH, help="The C++ file of the kernels; refuse if a kernel is missing there.")
@click.option("--kernels", type=_PATH, help="Also add bodies for missing kernels to this C++ file, to be filled in.")
@click.option("--python", default=sys.executable, metavar="PATH", help="The Python whose torchgen is used [this one].")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --output-format json.")
@no_plugins_option
def stubs(**options: object) -> int:
    """Generate the declarations and registrations of a backend from its YAML, with the installed torchgen.

    Without YAML, the only one in the workspace is used. If it has errors, all of them are reported and nothing is generated.
    Nothing is written without --apply. No code of the workspace runs.
    """
    chosen = StubsOptions(**options)  # type: ignore[arg-type]
    mode = chosen.mode
    # Many small objects that live until the end: see `opschema lint`.
    gc.disable()
    start = chosen.source or Path.cwd()
    with closing(open_workspace(start, no_plugins=chosen.no_plugins, writes=mode == "apply")) as session:
        return _stubs(session, chosen, mode)


def _stubs(session: Session, options: StubsOptions, mode: Mode) -> int:
    with ProgressBar("reading", "files", enabled=not options.json) as progress:
        project = session.project(progress=progress, stamp=session.code_stamp)
        work = _Work.of(session, project, options)
        source = _relative(session.workspace, options.source)
        found = work.lint() if work is not None else _lint(session, project, [], source)
    errors = _of(found, Severity.ERROR)
    if work is None or errors.diagnostics:
        _print_findings(errors, options)
        return EXIT_FINDINGS
    for missing in found.not_checked:
        click.echo(f"opschema: {unchecked(missing)}", err=True)
    made = _make(work, _of(found, Severity.WARNING), options)
    files = [_file(session.workspace, path, text) for path, text in sorted(made.files.items())]
    _check_own(files, work.maker)
    files += [_file(session.workspace, path, text) for path, text in work.bodies(options.kernels)]
    changed = {file.path: file.after for file in files if file.before != file.after}
    if mode == "apply":
        write_all(session.workspace, changed)
    _print(work.request.source, made, files, mode, options)
    return EXIT_FINDINGS if mode == "check" and changed else EXIT_CLEAN


class _Work(msgspec.Struct, frozen=True):
    """A project, the pack that generates code from one of its files, and the request."""

    session: Session
    project: Project
    pack: Pack
    maker: StubMaker
    request: StubRequest

    @classmethod
    def of(cls, session: Session, project: Project, options: StubsOptions) -> _Work | None:
        """The work to do; None if the input does not parse.

        Raises:
            OpschemaError: nothing can be generated here, or it is not told from what; or a path leads out of the workspace.
        """
        settings = pack_options(session.config, session.registry)
        registry = session.registry_for(project)
        makers = [(pack, pack.stubs) for pack in registry.packs if pack.stubs is not None]
        registry.check_needed()
        report_broken(registry)
        found = [(path, pack, made) for pack, made in makers for path in made.sources(project, settings[pack.name])]
        source = _relative(session.workspace, options.source)
        chosen = _chosen(found, source)
        if chosen is None and any(source in ("", path) for _, path in project.problems):
            return None
        if chosen is None:
            raise OpschemaError(f"{source or 'this workspace'} holds nothing to generate stubs from")
        if options.impl_path is not None and not options.impl_path.is_file():
            raise OpschemaError(f"{options.impl_path}: no such file")
        path, pack, maker = chosen
        output, kernels = (_relative(session.workspace, path) for path in (options.output_dir, options.impl_path))
        return cls(session, project, pack, maker, StubRequest(path, options.python, output, kernels))

    def lint(self) -> Report:
        """Findings in the source; those about missing code only if the code exists."""
        later = () if self.request.impl_path else self.maker.later
        return _lint(self.session, self.project, [self.pack], self.request.source, later)

    def make(self) -> Stubs:
        """Files from the generator.

        Raises:
            OpschemaError: it refuses, or is not there.
        """
        options = pack_options(self.session.config, self.session.registry)[self.pack.name]
        return self.maker.make(self.project, options, self.request)

    def bodies(self, target: Path | None) -> list[tuple[str, str]]:
        """Return the file of kernels with bodies for the missing ones.

        Raises:
            OpschemaError: the path leads out of the workspace, or the generator writes no bodies.
        """
        if target is None:
            return []
        if self.maker.bodies is None:
            raise OpschemaError(f"{self.request.source}: there are no kernels to write")
        path = _relative(self.session.workspace, target)
        options = pack_options(self.session.config, self.session.registry)[self.pack.name]
        text = self.maker.bodies(self.project, options, self.request.source, path)
        return [(path, text)] if text is not None else []


Found: TypeAlias = tuple[str, Pack, StubMaker]


def _chosen(found: Sequence[Found], source: str) -> Found | None:
    """Return the requested file, or the only one; None if there is none."""
    named = [item for item in found if source in ("", item[0])]
    if len(named) > 1:
        raise OpschemaError(f"name one of {some([path for path, _, _ in found], _SHOWN)}")
    return named[0] if named else None


def _relative(workspace: Workspace, path: Path | None) -> str:
    return "" if path is None else workspace.relative(path)


def _lint(
    session: Session, project: Project, packs: Sequence[Pack], source: str = "", ignore: Sequence[str] = ()
) -> Report:
    """Findings of these packs in a file, or in all files, without failures of rules."""
    registry = session.registry.narrowed(pack.name for pack in packs)
    settings = resolve_settings(session.config, registry, ignore=ignore)
    started = time.perf_counter()
    outcome = run(Job(registry, settings, stamp=project.stamp), project)
    seconds = time.perf_counter() - started
    found = [item for item in outcome.diagnostics if source in ("", item.place.path) and item.code != CRASHED.code]
    summary = Summary(0, 0, 0, outcome.suppressed, 0, outcome.ops, outcome.files, seconds=seconds)
    missing = [item for item in outcome.not_checked if not item.ignored]
    return Report(found, summary, project.source, {}, session.root, not_checked=missing)


def _of(report: Report, severity: Severity) -> Report:
    """Return the report with findings of one severity only."""
    found = [item for item in report.diagnostics if item.severity is severity]
    errors = len(found) if severity is Severity.ERROR else 0
    return replace(
        report, diagnostics=found, summary=replace(report.summary, errors=errors, warnings=len(found) - errors)
    )


def _make(work: _Work, doubts: Report, options: StubsOptions) -> Stubs:
    """Generate the files; if the generator refuses, uncertain findings are reported too, as they may be the reason."""
    try:
        return work.make()
    except StubsRefused as error:
        if not doubts.diagnostics or options.json:
            raise
        _print_report(doubts)
        hint = "see above; if it is for another version, --python names an interpreter that has that"
        raise OpschemaError(f"{error}\n{hint}") from None


def _file(workspace: Workspace, path: str, text: str | None) -> FileReport:
    """Return a file before and after; line ends are kept.

    Raises:
        OpschemaError: what lies there is no text.
    """
    try:
        before = workspace.source(path).text
    except ReadError as error:
        if os.path.lexists(workspace.root / path):
            raise OpschemaError(f"{path} is there and cannot be read: {error.reason}") from None
        return FileReport(path, None, text)
    return FileReport(path, before, text.replace("\n", "\r\n") if text is not None and "\r\n" in before else text)


def _check_own(files: Sequence[FileReport], maker: StubMaker) -> None:
    """Check that no file written by a person is overwritten.

    Raises:
        OpschemaError: one would be.
    """
    foreign = [file.path for file in files if file.before and not maker.is_generated(file.before)]
    if foreign:
        hint = "move it away, or name another --output-dir"
        raise OpschemaError(f"{some(foreign, _SHOWN)} is there and was not generated; {hint}")


def _print_findings(report: Report, options: StubsOptions) -> None:
    if options.json:
        write_text(load_writer("json")(report), None)
        return
    _print_report(report)
    click.echo("opschema: nothing was generated: see above", err=True)


def _print_report(report: Report) -> None:
    from opschema_cli.reporters.text import write

    write(report, sys.stdout)


def _print(source: str, made: Stubs, files: Sequence[FileReport], mode: Mode, options: StubsOptions) -> None:
    # Not at the top: rich costs more than the help of this command.
    from opschema_cli.reporters import stubs as reporter
    from opschema_cli.reporters.text import open_console

    report = reporter.StubsReport(source, made.generator, files, mode)
    if options.json:
        write_text(reporter.write_json(report), None)
        return
    if mode == "dry-run" and not sys.stdout.isatty():
        write_text(reporter.write_patch(report), None)
    reporter.write_text(report, open_console(sys.stdout))

"""``opschema upgrade``."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click
import msgspec

from opschema_cli.commands.lint_report import exit_code, report_of
from opschema_cli.commands.output import ProgressBar, write_text
from opschema_cli.commands.plugins import no_plugins_option, open_workspace
from opschema_cli.commands.torch_release import aimed, known_name, known_releases
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import TORCH_CHANGED, TORCH_REMOVED
from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.runner import Job, Outcome, report_outcome, run_packs
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.lint.torch_uses import TorchUse
from opschema_cli.project import Project
from opschema_cli.reporters import DESCRIBING, FORMATS, Report, load_writer
from opschema_cli.root import check_output
from opschema_cli.session import Session, path_filter

_PATH = click.Path(path_type=Path)


class UpgradeOptions(msgspec.Struct, frozen=True):
    """The options of one ``opschema upgrade``."""

    paths: tuple[Path, ...]
    old: str
    new: str
    output_format: str
    output_file: Path | None
    no_plugins: bool


@click.command(short_help="List what must change in this repository for another release of PyTorch.")
@click.argument("paths", nargs=-1, type=_PATH)
@click.option(
    "--from", "old", required=True, metavar="RELEASE", help="The release that the tree works with, for example 2.13."
)
@click.option("--to", "new", default="", metavar="RELEASE", help="The release to upgrade to [the newest known].")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output-file", type=_PATH, help="Write the report to this file.")
@no_plugins_option
def upgrade(**options: object) -> int:
    """Compare two releases of PyTorch, and list what their differences mean for PATHS (default: the entire tree).

    Reports each removed or changed operator of PyTorch that the tree lists, implements or copies, with the code to write, and
    the findings of `opschema lint` that the new release adds. Exits with 1 if something must be changed.
    """
    chosen = UpgradeOptions(**options)  # type: ignore[arg-type]
    started = time.perf_counter()
    gc.disable()  # see `opschema lint`
    start = chosen.paths[0] if chosen.paths else Path.cwd()
    with closing(open_workspace(start, no_plugins=chosen.no_plugins)) as session:
        if chosen.output_file is not None:
            check_output(chosen.output_file, session.root)
        outcome, project = _Upgrade(session, chosen).run()
        described = chosen.output_format in DESCRIBING
        report = report_of(session, project, outcome, time.perf_counter() - started, described)
        _print(report, chosen)
    return exit_code(outcome, Severity.ERROR)


class _Upgrade:
    """The comparison of a workspace's findings with two releases."""

    def __init__(self, session: Session, options: UpgradeOptions) -> None:
        known = known_releases(session.registry)
        self.session = session
        self.paths = path_filter(session, options.paths)
        self.shows_progress = options.output_format == "text"
        self.old = known_name(options.old, known)
        self.new = known_name(options.new, known) if options.new or not known else known[-1]
        if self.old == self.new:
            raise OpschemaError(f"--from and --to are both {self.old}")

    def run(self) -> tuple[Outcome, Project]:
        """Return the findings that the new release adds, with changes of operators first at each place."""
        config = self.session.config
        before, project, uses = self._lint(self.old, ())
        after, project, _ = self._lint(self.new, list(self._changes(project, uses)))
        self.session.config = config
        known = {_key(item) for item in before.diagnostics}
        compared = {item.place for item in after.diagnostics if _is_change(item)}
        kept = [
            item
            for item in after.diagnostics
            if _is_change(item) or (_key(item) not in known and item.place not in compared)
        ]
        used = {item.name for item in uses}
        nothing = after.nothing and not used
        return msgspec.structs.replace(after, diagnostics=kept, ops=max(after.ops, len(used)), nothing=nothing), project

    def _lint(self, release: str, extra: Sequence[Diagnostic]) -> tuple[Outcome, Project, list[TorchUse]]:
        """Return the findings for a release, including those of the comparison, and the uses of its operators."""
        session = self.session
        session.config = aimed(session.config, session.registry, release)
        with ProgressBar(f"torch {release}", "files", enabled=self.shows_progress) as progress:
            project = session.project(progress=progress, stamp=session.code_stamp)
            registry = session.registry_for(project)
            settings = resolve_settings(session.config, registry)
            job = Job(registry, settings, paths=self.paths, stamp=session.code_stamp)
            findings = run_packs(job, project)
        findings.found += extra
        uses = [] if extra else list(_uses(registry.packs, project, settings.pack_options))
        return report_outcome(job, project, findings), project, uses

    def _changes(self, project: Project, uses: Sequence[TorchUse]) -> Iterable[Diagnostic]:
        registry = self.session.registry
        for pack in registry.narrowed(item.name for item in registry.all_packs if item.releases).packs:
            if pack.torch_changes is not None:
                yield from pack.torch_changes(project, uses, self.old, self.new)


def _uses(packs: Iterable[Pack], project: Project, options: Mapping[str, object]) -> Iterable[TorchUse]:
    for pack in packs:
        yield from pack.torch_uses(project, options[pack.name])


def _is_change(item: Diagnostic) -> bool:
    return item.code in (TORCH_CHANGED.code, TORCH_REMOVED.code)


def _key(item: Diagnostic) -> object:
    """Return the key that identifies a finding for both releases; its message may contain the release's name."""
    return item.code, item.place, item.ops


def _print(report: Report, options: UpgradeOptions) -> None:
    if options.output_format != "text":
        write_text(load_writer(options.output_format)(report), options.output_file)
        return
    # Not at the top: rich costs more than the help of this command.
    import io

    from opschema_cli.reporters.text import write

    if options.output_file is None:
        write(report, sys.stdout)
        return
    stream = io.StringIO()
    write(report, stream)
    write_text(stream.getvalue(), options.output_file)

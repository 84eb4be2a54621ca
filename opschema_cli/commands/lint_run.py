"""Runs the rules for ``opschema lint``: from the cache, in one process, or in two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from opschema_cli import suggestions
from opschema_cli.commands.lint_options import LintOptions
from opschema_cli.commands.lint_report import load_reporter
from opschema_cli.commands.output import ProgressBar
from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.baseline import DEFAULT_NAME, BaselineFile, read_baseline
from opschema_cli.lint.between_imports import between_imports
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.replay import StaleRun, recall, remember, run_key
from opschema_cli.lint.runner import Job, Outcome, PackFindings, report_outcome, run, run_packs, scan_ahead
from opschema_cli.lint.settings import Settings, resolve_settings
from opschema_cli.lint.shared_work import LostForkError, Share, SharedFlag
from opschema_cli.project import Project
from opschema_cli.regular_files import read_regular
from opschema_cli.session import MANY_MODULES, Session, path_filter

if TYPE_CHECKING:
    from opschema_cli.lint.forked_run import Publish, Task

MAX_HELPERS = 3
"""Maximum number of processes that help to run the rules of a pack: each repeats the common computations."""

PARSED_IN_FORK = 4
"""Maximum number of changed Python files that the forked process parses; more are parsed by workers."""


def _split(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def settings_of(session: Session, registry: Registry, options: LintOptions) -> Settings:
    """The settings of a run: configuration and options."""
    return resolve_settings(
        session.config,
        registry,
        select=_split(options.select),
        ignore=_split(options.ignore),
        fail_on=options.fail_on,
        preview=options.preview,
    )


class Inputs(msgspec.Struct, frozen=True):
    """Inputs of a run besides the workspace: the given paths, the baseline, the stamp of opschema's code."""

    paths: frozenset[str] | None
    baseline_path: Path
    baseline: BaselineFile | None
    baseline_name: str
    baseline_text: str
    stamp: str


def baseline_of(session: Session, options: LintOptions) -> Path | None:
    """Return the baseline of this run; None if it has none."""
    return None if options.no_baseline else options.baseline or session.baseline_path()


def inputs_of(session: Session, options: LintOptions) -> Inputs:
    """Read the inputs of a run, while git lists the files."""
    session.workspace.list_ahead()
    # Statistics are timings of rules that run, so nothing comes from the cache.
    stamp = "" if options.no_cache or options.statistics else session.code_stamp
    path = baseline_of(session, options)
    asked = options.paths or ([options.stdin_filename] if options.stdin_filename is not None else [])
    # The baseline is of the entire workspace, whatever is reported.
    paths = None if options.write_baseline else path_filter(session, asked)
    if path is None or options.write_baseline:
        target = session.workspace.locate(DEFAULT_NAME) if options.write_baseline else session.root / DEFAULT_NAME
        return Inputs(paths, path or target, None, "", "", stamp)
    baseline = read_baseline(path)
    try:
        shown = session.workspace.relative(path)
    except OpschemaError:
        shown = str(path)
    return Inputs(paths, path, baseline, shown, read_regular(path).decode(), stamp)


def job_of(session: Session, registry: Registry, inputs: Inputs, options: LintOptions) -> Job:
    """The job of a run with the packs of ``registry``."""
    held = (inputs.baseline, inputs.baseline_name, inputs.baseline_text)
    return Job(registry, settings_of(session, registry, options), *held, inputs.paths, inputs.stamp)


def run_lint(session: Session, inputs: Inputs, options: LintOptions) -> tuple[Outcome, Project]:
    """Return the outcome of an unchanged workspace from the cache, otherwise that of a run; only a run imports the packs."""
    workspace = session.workspace
    replay = bool(inputs.stamp) and not workspace.overlay
    key = run_key(workspace, _fingerprint(session, inputs, options), inputs.stamp) if replay else ""
    with ProgressBar("reading", "files", enabled=options.output_format == "text") as progress:
        project = session.project(progress=progress, stamp=inputs.stamp)
        known = recall(session.cache, key, workspace) if replay else None
        if isinstance(known, Outcome):
            return known, project
        try:
            outcome = _run_anew(session, project, inputs, options, known)
        except LostForkError:
            project = session.project(progress=progress, stamp=inputs.stamp)
            job = job_of(session, session.registry_for(project, prefetch=True), inputs, options)
            outcome = run(job, project)
    if replay:
        remember(session.cache, key, workspace, outcome)
    return outcome, project


def _run_anew(
    session: Session, project: Project, inputs: Inputs, options: LintOptions, known: StaleRun | None
) -> Outcome:
    """Run all packs, some of them in a forked process: from the start if little has changed since the last run, otherwise once
    the files are parsed.
    """
    forks = session.forks and not (options.fix or options.diff)
    modules = [path for path in known.changed if is_python(path)] if known is not None else []
    if known is not None and forks and len(modules) <= MANY_MODULES:
        # The packs come in the order of their names.
        others = session.registry.narrowed(known.packs[1:])
        if others.used or 0 < len(modules) <= PARSED_IN_FORK:
            return _run_divided(session, project, inputs, options, others, modules)
    session.warm_up(known.changed if known is not None else None)
    registry = session.registry_for(project, prefetch=True)
    scan_ahead(registry, project)
    project.pump()
    project.workspace.release()
    with between_imports(project.feed):
        job = job_of(session, registry, inputs, options)
    divide = partial(_divide, session, job, project, options) if forks else None
    helpers = HelperProcesses.of(session, project) if forks else None
    return report_outcome(job, project, run_packs(job, project, divide=divide, helpers=helpers))


def _divide(session: Session, job: Job, project: Project, options: LintOptions, packs: Sequence[str]) -> ForkedPacks:
    """Run some packs in a forked process, which begins with the files that are parsed here."""
    rest = msgspec.structs.replace(job, registry=job.registry.narrowed(packs))

    def run_rest(report_parsed: Callable[[], None], publish: Publish) -> tuple[PackFindings, Project]:
        with closing(session.forked()) as child:
            project.continue_in_fork(child.cache, lambda: child.parsers)
            helpers = HelperProcesses.of(child, project, fewer=1, spare=idle)
            return run_packs(rest, project, publish=publish, helpers=helpers), project

    idle = SharedFlag()
    return ForkedPacks(session, project, options, run_rest, idle)


class HelperProcesses:
    """Processes that take a part of the runs of a pack: its :class:`~opschema_cli.lint.shared_work.Helpers`."""

    def __init__(self, session: Session, project: Project, count: int, spare: SharedFlag | None = None) -> None:
        self._session, self._project = session, project
        self._count, self._spare = count, spare

    @classmethod
    def of(
        cls, session: Session, project: Project, *, fewer: int = 0, spare: SharedFlag | None = None
    ) -> HelperProcesses | None:
        """Return helpers for the processors that this process and ``fewer`` others leave, and one more while ``spare`` is
        raised; None if none is ever left.
        """
        count = session.processes - 1 - fewer
        return cls(session, project, count, spare) if count > 0 or spare is not None else None

    @property
    def count(self) -> int:
        """Return the number of helpers that there are processors for now."""
        return min(self._count + bool(self._spare), MAX_HELPERS)

    def fork(self, work: Callable[[], Share]) -> Callable[[], Share]:
        """Have a helper do some work; calling the result waits for its output.

        Raises:
            OSError: no process can be started.
        """
        # Not at the top: an unchanged workspace does not need it.
        from opschema_cli.lint.forked_run import ForkedRun

        session, project = self._session, self._project
        project.settle()  # a helper cannot wait for what this process has parsed

        def help_out(report_parsed: Callable[[], None], publish: Publish) -> tuple[Share, Project]:
            with closing(session.forked()) as child:
                project.continue_in_fork(child.cache, lambda: child.parsers)
                return work(), project

        process = ForkedRun(help_out, Share)
        session.helpers.callback(process.close)

        def join() -> Share:
            share = process.join(project)
            suggestions.spend(share.spent)
            # In one process some of the last names might have got no suggestion.
            if suggestions.exhausted():
                raise LostForkError
            return share

        return join


class ForkedPacks:
    """Packs that run in a forked process: the :class:`~opschema_cli.lint.runner.Others` of those that run here. ``idle`` is raised
    while this process only waits for that one.

    Raises:
        LostForkError: no process can be started.
    """

    def __init__(
        self, session: Session, project: Project, options: LintOptions, task: Task[PackFindings], idle: SharedFlag
    ) -> None:
        # Not at the top: an unchanged workspace does not need it.
        from opschema_cli.lint.forked_run import ForkedRun

        self._project, self._options, self._idle = project, options, idle
        try:
            self._process = ForkedRun(task, PackFindings)
        except OSError:
            raise LostForkError from None
        session.helpers.callback(self._process.close)

    def wait_parsed(self) -> None:
        """Wait until the changed files are parsed."""
        self._process.wait_parsed()

    def shared(self) -> Mapping[str, bytes]:
        """Data that the packs share, by pack."""
        with self._idle.raised():
            return self._process.shared()

    def join(self) -> PackFindings:
        """The findings of the packs.

        Raises:
            LostForkError: there are none.
        """
        with self._idle.raised():
            # While the child is still busy.
            self._project.save_readings()
            load_reporter(self._options)
            return self._process.join(self._project)


def _run_divided(
    session: Session,
    project: Project,
    inputs: Inputs,
    options: LintOptions,
    others: Registry,
    changed: Sequence[str],
) -> Outcome:
    """Run the packs of ``others`` in a forked process and the rest here. If few Python files have ``changed``, the child
    parses them for both: it starts before this process needs them, which then finds them in the cache.
    """
    few = len(changed) <= PARSED_IN_FORK

    def run_others(report_parsed: Callable[[], None], publish: Publish) -> tuple[PackFindings, Project]:
        with closing(session.forked()) as child:
            forked = child.project(stamp=inputs.stamp)
            for path in changed if few else ():
                forked.expect_file(path)
            forked.when_settled(report_parsed)
            if not others.used:
                forked.settle()
                return PackFindings(), forked
            child.prefetch(others, forked)
            job = job_of(child, others, inputs, options)
            forked.settle()
            helpers = HelperProcesses.of(child, forked, fewer=1, spare=idle)
            return run_packs(job, forked, publish=publish, helpers=helpers), forked

    idle = SharedFlag()
    forked_packs = ForkedPacks(session, project, options, run_others, idle)
    if not few:
        session.warm_up(changed)
    job = job_of(session, session.registry_for(project, prefetch=not few, but=others), inputs, options)
    forked_packs.wait_parsed()

    helpers = HelperProcesses.of(session, project, fewer=1)
    return report_outcome(job, project, run_packs(job, project, forked_packs, helpers=helpers))


def _fingerprint(session: Session, inputs: Inputs, options: LintOptions) -> bytes:
    chosen = (
        options.select,
        options.ignore,
        options.preview,
        sorted(inputs.paths) if inputs.paths is not None else None,
        sorted(options.as_implemented),
    )
    return msgspec.json.encode(
        (session.config.unplaced, session.partial, chosen, inputs.baseline_text, inputs.baseline_name)
    )

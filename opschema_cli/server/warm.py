"""Lint a workspace again and again: after a change only the packs run that have read a changed file.

Each pack has a project of its own, which records what the pack asks for. It hands its parsed files on to the project of the next
run. A pack that builds on another is passed what that one shares, as in a forked run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress

import msgspec

from opschema_cli.lint.baseline import BaselineFile, read_baseline
from opschema_cli.lint.fix import fix_all
from opschema_cli.lint.loaded import Entry
from opschema_cli.lint.operators import operators_of
from opschema_cli.lint.pack import Pack, nothing_touched
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, Outcome, PackFindings, report_outcome, run_packs
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.lint.touched import Change, look, moved_findings
from opschema_cli.operators.model import Operator
from opschema_cli.project import Project
from opschema_cli.session import Session
from opschema_cli.workspace import ReadError, Workspace

FirstLook = Callable[[Outcome, Set[str]], None]
"""Receives the probable findings of some files before the entire workspace is linted."""


class Superseded(BaseException):
    """A run was aborted because its texts changed or the user cancelled it. Code that catches errors does not catch it."""


class _PackRun(msgspec.Struct):
    """The last run of a pack: its project, its findings, the values that it shared, and those that it received. ``changed`` are
    the files that have changed since.
    """

    project: Project
    findings: PackFindings
    shares: Mapping[str, bytes]
    given: Mapping[str, bytes]
    changed: set[str] = msgspec.field(default_factory=set)
    operators: list[Operator] | None = None

    @property
    def is_stale(self) -> bool:
        """Whether a file has changed that the pack has read."""
        return any(map(self.project.workspace.was_asked, self.changed))

    def changes_to(self, new: Workspace) -> list[Change] | None:
        """The changes since this run of files that the pack has read; None if one had no text, or has none."""
        old = self.project.workspace
        read = sorted(filter(old.was_asked, self.changed))
        try:
            return [Change.between(path, old.peek_source(path).text, new.peek_source(path).text) for path in read]
        except ReadError:
            return None


class _Shared:
    """The results of packs that ran in another process: the values that they share, with nothing to wait for."""

    def __init__(self, shared: Mapping[str, bytes]) -> None:
        self._shared = shared

    def shared(self) -> Mapping[str, bytes]:
        """Data that the packs share, by pack."""
        return self._shared

    def join(self) -> PackFindings:
        """No findings: they are joined elsewhere."""
        return PackFindings()


class WarmLint:
    """The runs of a session. ``checkpoint`` is called again and again while one goes on; it may raise :class:`Superseded`."""

    def __init__(
        self, session: Session, checkpoint: Callable[[], None], progress: Callable[[int, int], None] | None = None
    ) -> None:
        self.session = session
        self._checkpoint = checkpoint
        self._progress = progress
        self._stamp = session.code_stamp
        self._runs: dict[str, _PackRun] = {}
        self._baseline = _read_baseline(session)
        self.project = self._new_project()
        """The project of the report, with all texts as of the last run."""
        self._job: Job | None = None

    def _new_project(self) -> Project:
        project = self.session.project(progress=self._progress, stamp=self._stamp)
        project.checkpoint = self._checkpoint
        return project

    def run(
        self, overlay: Mapping[str, str | None], changed: Collection[str], first: FirstLook | None = None
    ) -> Outcome:
        """Lint the workspace with these texts, which ``changed`` since the last run that was completed; the list of files is the
        same. ``first`` is called after a first look at files that were edited.

        Raises:
            OpschemaError: the configuration is wrong, or a pack refuses it.
            Superseded: the run was given up; the next one takes up the changes.
        """
        if "parsers" in self.session.__dict__:
            self.session.parsers.begin_run()
        for run in self._runs.values():
            run.changed.update(changed)
        self.project = report = self.project.updated(overlay, changed)
        registry = self.session.registry_for(report)
        settings = resolve_settings(self.session.config, registry)
        self._job = job = Job(registry, settings, *self._baseline, None, self._stamp)
        if first is not None:
            with suppress(Exception):  # the run that follows meets it again, and reports it
                self._look(job, overlay, first)
        findings = PackFindings()
        for pack in _in_order(registry.packs):
            run = self._run_of(pack, job, overlay)
            findings = findings.joined(run.findings)
            report.inputs |= run.project.inputs
            report.take_problems(run.project.problems.values())
        self._runs = {name: run for name, run in self._runs.items() if name in findings.packs}
        return report_outcome(job, report, findings)

    @property
    def registry(self) -> Registry:
        """The packs, with those in use that found something in the last run."""
        return self._job.registry if self._job is not None else self.session.registry

    def operators(self) -> list[Operator]:
        """The operators that the packs of the last run find, of each pack read once after it ran.

        Raises:
            Superseded: it was given up.
        """
        assert self._job is not None  # there is an outcome
        for pack in self._job.registry.packs:
            run = self._runs.get(pack.name)
            if run is not None and run.operators is None:
                found: list[Operator] = []
                for operator in operators_of([pack], run.project, self._job.settings.pack_options):
                    self._checkpoint()
                    found.append(operator)
                run.operators = found
        return [operator for run in self._runs.values() for operator in run.operators or ()]

    def pack_of(self, operator: Operator) -> tuple[Pack, Project, Job]:
        """The pack that found an operator, the project of its last run, and the settings of that."""
        assert self._job is not None  # there is an outcome
        pack = next(pack for pack in self._job.registry.packs if pack.name == operator.pack)
        return pack, self._runs[pack.name].project, self._job

    def schema_of(self, path: str) -> bytes | None:
        """Return the JSON Schema of a file from the pack that owns it, or None if no pack has one."""
        assert self._job is not None  # there is an outcome
        for pack in self._job.registry.packs:
            options, run = self._job.settings.pack_options[pack.name], self._runs.get(pack.name)
            for item in pack.schemas if run is not None else ():
                assert run is not None  # see above
                if path in item.files(run.project, options):
                    return item.text(run.project, options)
        return None

    @property
    def entries(self) -> list[Entry]:
        """The stretches of files that declare one operator."""
        return [entry for run in self._runs.values() for entry in run.findings.entries]

    def fixed(self, outcome: Outcome) -> Mapping[str, str]:
        """The texts that all safe fixes change, by path.

        Raises:
            Superseded: it was given up.
        """
        assert self._job is not None  # there is an outcome
        overlaid = self.project.with_overlay
        return fix_all(self._job, self.project, outcome, overlaid, unsafe=False)[0].texts

    def _look(self, job: Job, overlay: Mapping[str, str | None], first: FirstLook) -> None:
        """Pass on the findings in subjects that edits touch, beside those of the last runs at their new places."""
        changed = {path for run in self._runs.values() if run.is_stale for path in run.changed}
        report = self.project.updated(overlay, ())
        findings = PackFindings()
        for pack in job.registry.packs:
            run = self._runs.get(pack.name)
            found = run.findings if run is not None else None
            if run is not None and run.is_stale:
                found = self._first_findings(job, pack, run, overlay, report)
            if run is None or found is None:
                return
            findings = findings.joined(found)
            report.inputs |= run.project.inputs
            report.take_problems(item for item in run.project.problems.values() if item.place.path not in changed)
        if changed:
            first(report_outcome(job, report, findings), changed)

    def _first_findings(
        self, job: Job, pack: Pack, run: _PackRun, overlay: Mapping[str, str | None], report: Project
    ) -> PackFindings | None:
        """Return the first findings of a pack that has read a changed file, or None if they are unknown until it has run."""
        changes = run.changes_to(report.workspace)
        if changes is None:
            return None
        if pack.speed.touched is nothing_touched:
            return moved_findings(run.findings, changes)
        project = run.project.updated(overlay, run.changed)
        found = look(job, pack, project, changes, run.findings)
        report.take_problems(item for item in project.problems.values() if item.place.path in project.claimed)
        return found

    def _run_of(self, pack: Pack, job: Job, overlay: Mapping[str, str | None]) -> _PackRun:
        """The last run of a pack if nothing that it read has changed since, else a new one."""
        builds_on = self._runs.get(pack.speed.builds_on)
        given = builds_on.shares if builds_on is not None else {}
        known = self._runs.get(pack.name)
        if known is not None and known.given == given and not known.is_stale:
            return known
        if known is not None:
            project = known.project.updated(overlay, known.changed)
        else:
            project = self._new_project()
            project = project.updated(overlay, {*overlay, *project.workspace.overlay})
        shares: dict[str, bytes] = {}
        alone = msgspec.structs.replace(job, registry=job.registry.narrowed([pack.name]))
        found = run_packs(alone, project, _Shared(given), publish=shares.update)
        project.save_readings()
        self._runs[pack.name] = _PackRun(project, found, shares, given)
        return self._runs[pack.name]


def _in_order(packs: Iterable[Pack]) -> list[Pack]:
    """Packs, those on which others build first."""
    return sorted(packs, key=lambda pack: bool(pack.speed.builds_on))


def _read_baseline(session: Session) -> tuple[BaselineFile | None, str, str]:
    """The baseline of a workspace, its name and its text."""
    path = session.baseline_path()
    if path is None:
        return None, "", ""
    name = session.workspace.relative(path)
    return read_baseline(path), name, path.read_text(encoding="utf-8")

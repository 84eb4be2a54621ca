"""Runs the rules over the subjects of every detected pack, and merges their findings."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Protocol

import msgspec

from opschema_cli import suggestions
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.baseline import BaselineFile, apply_baseline, stale_findings
from opschema_cli.lint.builtin import CRASHED, GIT_SILENT, NOT_CHECKED, UNCHECKED, UNREADABLE
from opschema_cli.lint.diagnostic import Diagnostic, NotChecked, NotUnderstood, Place, Unread
from opschema_cli.lint.execute import Executor
from opschema_cli.lint.limits import within_limits
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.lint.not_checked import joined
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.pack_calls import read_on
from opschema_cli.lint.recognition import Recognition
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import Settings
from opschema_cli.lint.shared_work import Helpers
from opschema_cli.lint.suppress import apply_suppressions, find_suppressions, suppression_findings
from opschema_cli.lint.timing import Timing
from opschema_cli.lint.unread import find_unread
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.text import Span
from opschema_cli.workspace import Workspace

MAX_RELATED = 8
"""Maximum number of other sides that a merged diagnostic shows."""


def _is_marked(data: bytes) -> bool:
    return b"opschema:" in data or data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


_IS_MARKED: Reading[bytes, bool] = Reading("suppressions", _is_marked, bool)
"""Whether a file may contain suppressions."""


class Outcome(msgspec.Struct):
    """Everything one run found, before it is reported. With ``nothing`` no pack found anything to lint in the paths that were
    asked for; ``unread`` are the declarations that no pack reads. ``judged`` are the codes of the rules that ran and saw all:
    what they did not find is not there.
    """

    diagnostics: list[Diagnostic] = msgspec.field(default_factory=list)
    suppressed: int = 0
    baselined: int = 0
    ops: int = 0
    files: int = 0
    packs: list[str] = msgspec.field(default_factory=list)
    timings: dict[str, Timing] = msgspec.field(default_factory=dict)
    crashed: bool = False
    traces: list[str] = msgspec.field(default_factory=list)
    nothing: bool = False
    unread: list[Unread] = msgspec.field(default_factory=list)
    not_checked: list[NotChecked] = msgspec.field(default_factory=list)
    judged: frozenset[str] = frozenset()
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)
    partly: int = 0


class Job(msgspec.Struct, frozen=True):
    """The settings of a run that stay the same while fixes are tried.

    ``stamp`` identifies opschema's own code, under which findings of pure rules are cached; empty for no caching.
    """

    registry: Registry
    settings: Settings
    baseline: BaselineFile | None = None
    baseline_path: str = ""
    baseline_text: str = ""
    paths: frozenset[str] | None = None
    stamp: str = ""


class PackFindings(msgspec.Struct):
    """Findings of packs, not merged yet, and counts of what they covered; ``declaring`` are their schema files."""

    packs: list[str] = msgspec.field(default_factory=list)
    ops: int = 0
    partly: int = 0
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)
    entries: list[Entry] = msgspec.field(default_factory=list)
    found: list[Diagnostic] = msgspec.field(default_factory=list)
    timings: dict[str, Timing] = msgspec.field(default_factory=dict)
    not_checked: list[NotChecked] = msgspec.field(default_factory=list)
    failed: set[str] = msgspec.field(default_factory=set)
    crashed: bool = False
    traces: list[str] = msgspec.field(default_factory=list)
    declaring: list[str] = msgspec.field(default_factory=list)

    def joined(self, other: PackFindings) -> PackFindings:
        """Return both merged."""
        return PackFindings(
            sorted(self.packs + other.packs),
            self.ops + other.ops,
            self.partly + other.partly,
            self.unresolved + other.unresolved,
            self.entries + other.entries,
            self.found + other.found,
            {**self.timings, **other.timings},
            self.not_checked + other.not_checked,
            self.failed | other.failed,
            self.crashed or other.crashed,
            self.traces + other.traces,
            self.declaring + other.declaring,
        )


class Others(Protocol):
    """Packs that run in another process."""

    def shared(self) -> Mapping[str, bytes]:
        """Return the data that they share, by pack; waits until they are loaded."""

    def join(self) -> PackFindings:
        """Return their findings; waits for them."""


def scan_ahead(registry: Registry, project: Project) -> None:
    """Scan the files in memory for the words needed at the end of a run, so that they are not read again."""
    held = sorted(project.workspace.held)
    dict(project.scan(_IS_MARKED, held))
    for sighting in (item for pack in registry.all_packs for item in pack.unread if not item.only_alone):
        dict(project.scan(sighting.counts, filter(sighting.concerns, held)))


def run(job: Job, project: Project) -> Outcome:
    """Lint a project."""
    return report_outcome(job, project, run_packs(job, project))


def run_packs(
    job: Job,
    project: Project,
    others: Others | None = None,
    *,
    publish: Callable[[Mapping[str, bytes]], None] | None = None,
    divide: Callable[[Sequence[str]], Others] | None = None,
    helpers: Helpers | None = None,
) -> PackFindings:
    """Run the rules of all packs in use, and join the findings of ``others``, which run in another process. ``publish`` receives
    what the packs share with those there, once all of them that share something are loaded.

    ``divide`` is given the names of the packs after the first, once all files are parsed that these and the first are known to
    need; it runs them in another process. ``helpers`` are processes that take a part of the runs.
    """
    suggestions.start_anew()
    elsewhere = [others] if others is not None else []
    findings = PackFindings()
    executor = Executor(job.settings, project.cache, job.stamp, helpers)
    meant: dict[str, set[str]] = {}
    joint: list[tuple[Pack, Loaded]] = []
    shared: dict[str, bytes] = {}
    run: list[Loaded] = []
    reads = {head.name: head.speed.reads for head in job.registry.all_packs}
    for pack in job.registry.packs[1:]:
        read_on(pack, project, job.settings.pack_options[pack.name], reads[pack.name])
    waiting = list(job.registry.packs)
    while waiting:
        pack = waiting.pop(0)
        loaded = executor.load(pack, project)
        if loaded is not None:
            findings.packs.append(pack.name)
            if publish is not None:
                shared |= executor.share(pack, project)
                if pack.speed.shares is not None and not any(item.speed.shares for item in waiting):
                    publish(shared)
            divides = divide is not None and bool(waiting)
            if divide is not None and waiting:
                project.when_settled(partial(_divided, divide, [item.name for item in waiting], elsewhere))
                waiting = []
            rest = executor.run_early(pack, loaded, project)
            if divides:
                project.settle()
            executor.run_rest(pack, loaded, project, rest)
            findings.ops += loaded.ops
            findings.partly += loaded.partly
            findings.declaring += loaded.files
            findings.entries += loaded.entries
            meant[pack.name] = project.claimed.union(loaded.files)
            project.claimed = set()
            joint += [(pack, loaded)] if loaded.joint else []
            run.append(loaded)
    project.settle()
    _forget_unrecognised(job, project, meant)
    known = frozenset(project.problems)
    for pack, loaded in joint:
        data = elsewhere[0].shared().get(pack.speed.builds_on) if elsewhere else None
        executor.run_joint(pack, loaded, project, data)
    _forget_unrecognised(job, project, meant, known)
    findings.unresolved = [item for loaded in run for item in loaded.unresolved]
    findings.found, findings.timings = executor.found, executor.timings
    findings.not_checked = [*executor.not_checked, *(pack.not_checked for pack in job.registry.broken)]
    findings.failed, findings.crashed, findings.traces = executor.failed, executor.crashed, executor.traces
    return findings.joined(elsewhere[0].join()) if elsewhere else findings


def _divided(divide: Callable[[Sequence[str]], Others], packs: Sequence[str], elsewhere: list[Others]) -> None:
    elsewhere.append(divide(packs))


def _forget_unrecognised(
    job: Job, project: Project, meant: Mapping[str, Set[str]], kept: Set[tuple[str, str]] = frozenset()
) -> None:
    """Drop problems of files that no pack recognizes, or no pack with selected rules, unless the problem's code is selected.
    ``meant`` are the files that each pack claimed, ``kept`` are problems to keep.
    """
    enabled, options = job.settings.enabled, job.settings.pack_options
    chosen = [pack for pack in job.registry.all_packs if any(rule.code in enabled for rule in pack.rules)]
    anyone, selected = (Recognition(project, packs, options, meant) for packs in (job.registry.all_packs, chosen))
    for code, path in project.problems.keys() - kept:
        if not (anyone if code in job.settings.selected else selected).reported(path):
            del project.problems[code, path]


def report_outcome(job: Job, project: Project, findings: PackFindings) -> Outcome:
    """Turn findings into an outcome: joined, suppressed, sorted; and cache readings for later runs."""
    outcome = Outcome(ops=findings.ops, packs=findings.packs, timings=findings.timings, crashed=findings.crashed)
    outcome.traces = findings.traces
    outcome.files, outcome.partly = _files_read(project, findings), findings.partly
    outcome.unresolved = sorted(
        set(findings.unresolved), key=lambda item: (item.place.path, item.place.span, item.reason)
    )
    kept = _join(_complete(job, item) for item in (*findings.found, *project.problems.values()))
    kept = [item for item in kept if item.code == CRASHED.code or _wanted(job, item)]
    linted = bool(findings.ops or findings.declaring or kept)
    sightings = [sighting for pack in job.registry.all_packs for sighting in pack.unread]
    outcome.unread = list(find_unread(project, sightings, set(findings.declaring), nothing=not linted))
    kept += [_complete(job, item) for item in _silence(project.workspace)]
    outcome.not_checked = [_counted(job, item) for item in joined(findings.not_checked)]
    outcome.judged = _judged(job, findings, kept)
    kept = _suppress(job, project, findings.entries, kept, outcome)
    project.save_readings()
    outcome.nothing = not linted or (job.paths is not None and job.paths.isdisjoint(project.inputs))
    kept = _hold(job, project, kept, outcome)
    if project.as_implemented:
        kept = list(_concerning(project.as_implemented, findings.entries, kept))
    if job.paths is not None:
        kept = [item for item in kept if _touches(item, job.paths)]
    outcome.diagnostics = sorted(kept, key=_order)
    return outcome


def _silence(workspace: Workspace) -> Iterator[Diagnostic]:
    """Yield a finding if git did not answer."""
    if workspace.unlisted:
        message = "git does not answer because it waits for a file that is not a regular one; the files were listed without git"
        yield Diagnostic(message, Place(workspace.unlisted, Span(0, 0)), code=GIT_SILENT.code)


def _complete(job: Job, item: Diagnostic) -> Diagnostic:
    rule = job.registry.rules[item.code]
    severity = job.settings.severity[item.code]
    if item.code not in job.settings.overrides:
        severity = min(severity, item.severity, key=lambda level: level.rank)
    return within_limits(msgspec.structs.replace(item, name=rule.name, severity=severity))


def _join(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merge diagnostics with the same code, place and message; the result has the ops and other sides of all of them."""
    groups: dict[tuple[str, Place, str], list[Diagnostic]] = {}
    for item in found:
        groups.setdefault((item.code, item.place, item.message), []).append(item)
    return [_merge(group) if len(group) > 1 else group[0] for group in groups.values()]


def _merge(group: Sequence[Diagnostic]) -> Diagnostic:
    first = group[0]
    related = tuple(dict.fromkeys(other for item in group for other in item.related))[:MAX_RELATED]
    ops = tuple(dict.fromkeys(op for item in group for op in item.ops))
    fix = first.fix if all(item.fix == first.fix for item in group) else None
    return msgspec.structs.replace(first, related=related, ops=ops, fix=fix)


def _suppress(
    job: Job, project: Project, entries: Sequence[Entry], kept: list[Diagnostic], outcome: Outcome
) -> list[Diagnostic]:
    inputs = sorted(project.inputs - project.workspace.provided.keys())
    marked = [path for path, found in project.scan(_IS_MARKED, inputs) if found]
    sources = {path: source for path in marked if (source := project.source(path)) is not None}
    suppressions = find_suppressions(sources.values(), job.registry, entries, project.yaml_root)
    kept, outcome.suppressed = apply_suppressions(kept, suppressions)
    extra = suppression_findings(suppressions, job.registry, job.settings.enabled, sources)
    return kept + [_complete(job, item) for item in extra if _wanted(job, item)]


def _hold(job: Job, project: Project, kept: list[Diagnostic], outcome: Outcome) -> list[Diagnostic]:
    if job.baseline is None:
        return kept
    kept, outcome.baselined, stale = apply_baseline(kept, job.baseline, project.source)
    fixed = [entry for entry in stale if entry.code in outcome.judged]
    extra = stale_findings(fixed, job.baseline_path, job.baseline_text)
    return kept + [_complete(job, item) for item in extra if _wanted(job, item)]


def _files_read(project: Project, findings: PackFindings) -> int:
    """Number of files of the workspace that were read, of any language."""
    shut = {path for code, path in project.problems if code == UNREADABLE.code}
    unread = shut.union(*(item.files for item in findings.not_checked))
    return len((project.inputs & project.workspace.file_set) - unread)


def _counted(job: Job, item: NotChecked) -> NotChecked:
    code = NOT_CHECKED.code
    level = max(NOT_CHECKED.severity, item.severity, key=lambda level: level.rank)
    return msgspec.structs.replace(
        item,
        code=code,
        name=NOT_CHECKED.name,
        severity=job.settings.overrides.get(code, level),
        ignored=code not in job.settings.enabled,
    )


_FILE_PROBLEMS = frozenset(rule.code for rule in UNCHECKED if rule not in (CRASHED, NOT_CHECKED))


def _judged(job: Job, findings: PackFindings, kept: Iterable[Diagnostic]) -> frozenset[str]:
    """Return the rules that ran and saw everything. A file that cannot be read or parsed may matter to any of them."""
    if any(item.code in _FILE_PROBLEMS for item in kept):
        return frozenset()
    return job.settings.enabled - findings.failed - {code for item in findings.not_checked for code in item.rules}


def _wanted(job: Job, item: Diagnostic) -> bool:
    return item.code in job.settings.enabled and not job.settings.ignored_in(item.place.path, item.code)


def _touches(item: Diagnostic, paths: frozenset[str]) -> bool:
    """Whether a finding belongs to the report on ``paths``; failures belong to every report."""
    return (
        item.code in (CRASHED.code, GIT_SILENT.code)
        or item.place.path in paths
        or any(other.place.path in paths for other in item.related)
    )


def _concerning(names: frozenset[str], entries: Iterable[Entry], found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield the findings on operators with these names; failures belong to every report.

    Raises:
        OpschemaError: there is no operator of a name.
    """
    declared = [entry for entry in entries if entry.name in names]
    unknown = sorted(names.difference(entry.name for entry in declared))
    if unknown:
        raise OpschemaError(f"--as-implemented: no operator here is called {', '.join(map('`{}`'.format, unknown))}")
    for item in found:
        within = any(
            item.place.path == entry.path and entry.key.start <= item.place.span.start <= entry.span.end
            for entry in declared
        )
        if within or not names.isdisjoint(item.ops) or item.code in (CRASHED.code, GIT_SILENT.code):
            yield item


def _order(item: Diagnostic) -> tuple[str, int, int, str, str]:
    return item.place.path, item.place.span.start, item.place.span.end, item.code, item.message

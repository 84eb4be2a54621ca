"""Runs the rules over the subjects of every detected pack, and joins what they find."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from opschema_cli.lint.baseline import BaselineFile, apply_baseline, stale_findings
from opschema_cli.lint.builtin import CRASHED
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.pack import Entry, Loaded, Pack
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.rule import Rule
from opschema_cli.lint.settings import Settings
from opschema_cli.lint.suppress import apply_suppressions, find_suppressions, suppression_findings
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node

MAX_RELATED = 8
"""Most other sides that one joined diagnostic shows."""


@dataclass
class Timing:
    """How often a rule ran, for how long (seconds), and what it found."""

    runs: int = 0
    seconds: float = 0.0
    findings: int = 0


@dataclass
class Outcome:
    """Everything one run found, before it is reported."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    suppressed: int = 0
    baselined: int = 0
    ops: int = 0
    files: int = 0
    packs: list[str] = field(default_factory=list)
    timings: dict[str, Timing] = field(default_factory=dict)
    crashed: bool = False


@dataclass(frozen=True)
class Job:
    """What to lint and how; the parts that stay the same while fixes are tried."""

    registry: Registry
    settings: Settings
    baseline: BaselineFile | None = None
    baseline_path: str = ""
    baseline_text: str = ""
    paths: frozenset[str] | None = None


def run(job: Job, project: Project) -> Outcome:
    """Lint a project."""
    outcome = Outcome()
    found: list[Diagnostic] = []
    entries: list[Entry] = []
    for pack in job.registry.packs:
        options = job.settings.pack_options[pack.name]
        if pack.detect(project, options):
            loaded = pack.load(project, options)
            outcome.packs.append(pack.name)
            outcome.ops += loaded.ops
            outcome.files += len(loaded.files)
            entries += loaded.entries
            found += _run_rules(job, pack, loaded, outcome)
    found += [item for item in project.problems.values() if item.code in job.settings.enabled]
    kept = _join(_complete(job, item) for item in found)
    kept = [item for item in kept if not job.settings.ignored_in(item.place.path, item.code)]
    kept = _suppress(job, project, entries, kept, outcome)
    kept = _hold(job, project, kept, outcome)
    if job.paths is not None:
        kept = [item for item in kept if _touches(item, job.paths)]
    outcome.diagnostics = sorted(kept, key=_order)
    return outcome


def _run_rules(job: Job, pack: Pack, loaded: Loaded, outcome: Outcome) -> Iterable[Diagnostic]:
    rules = [rule for rule in pack.rules if rule.code in job.settings.enabled and rule.subject is not None]
    by_type: dict[type, list[Rule]] = {}
    for subject in loaded.subjects:
        kind = type(subject)
        if kind not in by_type:
            by_type[kind] = [rule for rule in rules if rule.subject is not None and issubclass(kind, rule.subject)]
        for rule in by_type[kind]:
            yield from _run_rule(rule, subject, job, outcome)


def _run_rule(rule: Rule, subject: object, job: Job, outcome: Outcome) -> list[Diagnostic]:
    timing = outcome.timings.setdefault(rule.code, Timing())
    started = time.perf_counter()
    try:
        found = [
            msgspec.structs.replace(item, code=rule.code)
            for item in rule.run(subject, job.settings.rule_options.get(rule.code))
        ]
    except Exception as error:
        # Foreign code runs here: a plugin's rule must not take the run down with it.
        outcome.crashed = True
        found = [_crash(rule, subject, error)]
    timing.runs += 1
    timing.seconds += time.perf_counter() - started
    timing.findings += len(found)
    return found


def _crash(rule: Rule, subject: object, error: Exception) -> Diagnostic:
    place = getattr(subject, "place", None)
    name = getattr(subject, "name", None) or type(subject).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" (line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename})" if trace is not None else ""
    message = f"the rule {rule.code} ({rule.name}) failed on `{name}`: {type(error).__name__}: {error}{where}"
    return Diagnostic(message, place if isinstance(place, Place) else Place("", Span(0, 0)), code=CRASHED.code)


def _complete(job: Job, item: Diagnostic) -> Diagnostic:
    rule = job.registry.rules[item.code]
    severity = job.settings.severity[item.code]
    if item.code not in job.settings.overrides:
        severity = min(severity, item.severity, key=lambda level: level.rank)
    return msgspec.structs.replace(item, name=rule.name, severity=severity)


def _join(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One diagnostic for each code, place and message: the ops and other sides of all of them together."""
    joined: dict[tuple[str, Place, str], Diagnostic] = {}
    for item in found:
        key = (item.code, item.place, item.message)
        first = joined.get(key)
        if first is None:
            joined[key] = item
            continue
        related = tuple(dict.fromkeys((*first.related, *item.related)))[:MAX_RELATED]
        ops = tuple(dict.fromkeys((*first.ops, *item.ops)))
        fix = first.fix if first.fix == item.fix else None
        joined[key] = msgspec.structs.replace(first, related=related, ops=ops, fix=fix)
    return list(joined.values())


def _suppress(
    job: Job, project: Project, entries: Sequence[Entry], kept: list[Diagnostic], outcome: Outcome
) -> list[Diagnostic]:
    sources = {path: source for path in sorted(project.inputs) if (source := project.source(path)) is not None}

    def root_of(path: str) -> Node | None:
        file = project.yaml(path) if path.endswith((".yaml", ".yml")) else None
        return file.root if file is not None else None

    marked = [source for source in sources.values() if "opschema:" in source.text]
    suppressions = find_suppressions(marked, job.registry, entries, root_of)
    kept, outcome.suppressed = apply_suppressions(kept, suppressions)
    if job.paths is None:
        extra = suppression_findings(suppressions, job.registry, job.settings.enabled, sources)
        kept += [_complete(job, item) for item in extra if item.code in job.settings.enabled]
    return kept


def _hold(job: Job, project: Project, kept: list[Diagnostic], outcome: Outcome) -> list[Diagnostic]:
    if job.baseline is None:
        return kept
    kept, outcome.baselined, stale = apply_baseline(kept, job.baseline, project.source)
    if job.paths is None and "SUP003" in job.settings.enabled:
        ran = [entry for entry in stale if entry.code in job.settings.enabled]
        kept += [_complete(job, item) for item in stale_findings(ran, job.baseline_path, job.baseline_text)]
    return kept


def _touches(item: Diagnostic, paths: frozenset[str]) -> bool:
    return item.place.path in paths or any(other.place.path in paths for other in item.related)


def _order(item: Diagnostic) -> tuple[str, int, int, str, str]:
    return item.place.path, item.place.span.start, item.place.span.end, item.code, item.message

"""Runs rules over subjects, timing each; results that only depend on an unchanged subject come from the cache."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import msgspec

from opschema_cli import suggestions
from opschema_cli.authoring import failure, refuse
from opschema_cli.cache import Cache, decoded
from opschema_cli.crash_traces import trace_of
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import CRASHED
from opschema_cli.lint.crashes import NOWHERE, Crash
from opschema_cli.lint.diagnostic import Diagnostic, NotChecked, Severity
from opschema_cli.lint.diagnostic_checks import check_diagnostic
from opschema_cli.lint.limits import MAX_OF_SUBJECT, stopped, within_limits
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.not_checked import not_checked
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.pack_calls import finds, loaded_by
from opschema_cli.lint.rule import Part, Rule
from opschema_cli.lint.settings import Settings
from opschema_cli.lint.shared_work import Helpers, LostForkError, Ranges, Share, divided
from opschema_cli.lint.timing import Timing
from opschema_cli.project import Project
from opschema_cli.source.text import Span

_KIND = "findings"

Rest: TypeAlias = "list[tuple[list[Rule], object]]"
"""Subjects with the rules that remain to run over each."""


class _Look(msgspec.Struct, array_like=True):
    """Findings that only depend on a subject's content, and the codes of rules without candidates in it."""

    findings: list[Diagnostic]
    idle: list[str]


class Kept(Protocol):
    """Values that depend on the code of a subject, which stores them as ``kept``; see :mod:`opschema_cli.code_values`."""

    def get(self, key: str) -> bytes | None:
        """Return a value of an earlier run, if all its dependencies are unchanged."""

    def put(self, key: str, value: bytes) -> None:
        """Keep a value for later runs."""


def _kept(subject: object, head: str) -> Kept | None:
    """Return the cached values of a subject, if findings are to be cached."""
    return getattr(subject, "kept", None) if head else None


class Executor(msgspec.Struct):
    """Runs the enabled rules of packs and collects what they find, in the order of subjects and codes.

    ``stamp`` identifies the code of the rules; empty, nothing is cached. ``helpers`` take a part of what takes long.
    """

    settings: Settings
    cache: Cache
    stamp: str = ""
    helpers: Helpers | None = None
    found: list[Diagnostic] = msgspec.field(default_factory=list)
    timings: dict[str, Timing] = msgspec.field(default_factory=dict)
    not_checked: list[NotChecked] = msgspec.field(default_factory=list)
    failed: set[str] = msgspec.field(default_factory=set)
    crashed: bool = False
    traces: list[str] = msgspec.field(default_factory=list)
    crashes: dict[str, Crash] = msgspec.field(default_factory=dict)
    put_off: dict[str, list[tuple[Rule, object]]] = msgspec.field(default_factory=dict)
    """Runs of rules whose work has parts, by pack."""

    def load(self, pack: Pack, project: Project) -> Loaded | None:
        """Return the pack's subjects, not counted yet; None if it finds nothing of its kind, or fails.

        Raises:
            OpschemaError: the pack refuses its configuration.
        """
        options = self.settings.pack_options[pack.name]
        loaded: list[Loaded] = []
        with self._guarded(pack), self._watched(pack, project):
            if finds(pack, project, options):
                loaded.append(loaded_by(pack, project, options, counted=False))
        return loaded[0] if loaded else None

    @contextlib.contextmanager
    def _watched(self, pack: Pack, project: Project, loaded: Loaded | None = None) -> Iterator[None]:
        """Record which rules of the pack need parts that turn out to be missing while it is loaded or run."""
        before = len(project.missing)
        yield
        missing = project.missing[before:] + (loaded.missing if loaded is not None else [])
        self.not_checked += not_checked(missing, ((rule.code, rule.needs) for rule in self._enabled(pack)))

    def _enabled(self, pack: Pack) -> list[Rule]:
        return [rule for rule in pack.rules if rule.code in self.settings.enabled]

    def run_early(self, pack: Pack, loaded: Loaded, project: Project) -> Rest:
        """Run the rules that need no implementation while that is parsed. Return the remaining rules for each subject."""
        with self._watched(pack, project, loaded):
            return self._run_cached(self._enabled(pack), loaded.subjects, project, loaded)

    def run_rest(self, pack: Pack, loaded: Loaded, project: Project, rest: Rest) -> None:
        """Run the ``rest`` of the pack's rules, and all rules over the late subjects; then count the contents."""
        with self._watched(pack, project, loaded):
            self._run_made(pack, project, loaded, loaded.late, rest)
            with self._guarded(pack):
                loaded.count()
            if not loaded.joint:
                self._run_put_off(pack, project, loaded)
            self._tell_crashes(pack)

    def share(self, pack: Pack, project: Project) -> dict[str, bytes]:
        """Data that a pack shares with packs in another process, by its name."""
        with self._guarded(pack):
            if pack.speed.shares is not None:
                return {pack.name: pack.speed.shares(project, self.settings.pack_options[pack.name])}
        return {}

    def run_joint(self, pack: Pack, loaded: Loaded, project: Project, shared: bytes | None) -> None:
        """Run the pack's rules over its joint subjects, made from what another pack shares."""
        with self._watched(pack, project):
            self._run_made(pack, project, loaded, [partial(make, shared) for make in loaded.joint], [])
            self._run_put_off(pack, project, loaded)
            self._tell_crashes(pack)

    def _tell_crashes(self, pack: Pack) -> None:
        self.found += [crash.diagnostic(pack.name) for crash in self.crashes.values()]
        self.crashes.clear()

    def run_touched(self, pack: Pack, loaded: Loaded, project: Project, edits: Mapping[str, Span]) -> list[object]:
        """Run the pack's rules over the subjects that edits touch. Return these subjects."""
        subjects: list[object] = []

        def make() -> list[object]:
            subjects.extend(pack.speed.touched(loaded, edits))
            return subjects

        self._run_made(pack, project, loaded, [make], [])
        self._run_put_off(pack, project, loaded)
        return subjects

    def _run_made(
        self,
        pack: Pack,
        project: Project,
        loaded: Loaded,
        makers: Iterable[Callable[[], Iterable[object]]],
        rest: Rest,
    ) -> None:
        """Run rules over subjects that are made now, after the ``rest`` of the earlier ones."""
        late: list[object] = []
        for make in makers:
            with self._guarded(pack):
                late += make()
        rest = rest + self._run_cached(self._enabled(pack), late, project, loaded)
        runs = [(rule, subject) for rules, subject in rest for rule in rules]
        self._run_all([run for run in runs if run[0].parts is None], project, loaded)
        self.put_off.setdefault(pack.name, []).extend(run for run in runs if run[0].parts is not None)

    def _run_put_off(self, pack: Pack, project: Project, loaded: Loaded) -> None:
        """Run the rules with divisible work: first the parts, which processes share, and then the rules."""
        runs = self.put_off.pop(pack.name, [])
        parts: dict[str, list[tuple[Rule, Part]]] = {}
        for rule, subject in runs:
            with contextlib.suppress(Exception):  # foreign code; the rule fails of it again, and that is reported
                for part in rule.parts(subject) if rule.parts is not None else ():
                    parts.setdefault(part.key, []).append((rule, part))
        groups = list(parts.values())

        def work(number: int) -> list[Diagnostic]:
            project.pump()
            for rule, part in groups[number]:
                started = time.perf_counter()
                with contextlib.suppress(Exception):  # see above
                    part.work()
                self._timing(rule).seconds += time.perf_counter() - started
            return []

        self._divide(len(groups), work, project, loaded)
        self._run_all(runs, project, loaded)

    def _run_all(self, runs: Sequence[tuple[Rule, object]], project: Project, loaded: Loaded) -> None:
        """Run rules over subjects."""

        def run(number: int) -> list[Diagnostic]:
            project.pump()
            found: list[Diagnostic] = []
            self._run_rule(*runs[number], found)
            return found

        self.found += [item for found in self._divide(len(runs), run, project, loaded) for item in found]

    def _divide(
        self, count: int, run: Callable[[int], list[Diagnostic]], project: Project, loaded: Loaded
    ) -> list[list[Diagnostic]]:
        """Return the findings of each of ``count`` runs; other processes do some of them if it takes long."""
        found, shares = divided(count, run, self.helpers, partial(self._share, run, project, loaded))
        for share in shares:
            for code, timing in share.timings.items():
                self.timings.setdefault(code, Timing()).add(timing)
            project.missing += share.missing
            project.claimed |= share.claimed
            project.take_readings(share.readings)
            loaded.unresolved += share.unresolved
        return found

    def _share(self, run: Callable[[int], list[Diagnostic]], project: Project, loaded: Loaded, ranges: Ranges) -> Share:
        """Do a helper's part of the runs.

        Raises:
            LostForkError: a rule failed, which is told by who runs all again.
        """
        self.timings, missing, unresolved = {}, len(project.missing), len(loaded.unresolved)
        before = suggestions.spent()
        found = ranges.taken(run)
        if self.crashes:
            raise LostForkError
        return Share(
            found,
            self.timings,
            project.missing[missing:],
            project.claimed,
            loaded.unresolved[unresolved:],
            project.hand_over_readings(),
            suggestions.spent() - before,
        )

    @contextlib.contextmanager
    def _guarded(self, pack: Pack) -> Iterator[None]:
        """Guard the execution of foreign code: a plugin's pack must not hide the findings of others."""
        try:
            yield
        except OpschemaError:
            raise
        except Exception as error:
            self._failed(error)
            self.failed.update(rule.code for rule in pack.rules)
            message = f"the pack `{pack.name}` failed: {failure(error)}"
            self.found.append(Diagnostic(message, NOWHERE, code=CRASHED.code))

    def _failed(self, error: Exception) -> None:
        self.crashed = True
        self.traces.append(trace_of(error))

    def _run_cached(
        self, enabled: Sequence[Rule], subjects: Sequence[object], project: Project, loaded: Loaded
    ) -> Rest:
        """Run the rules that only depend on a subject's content, using the cache for unchanged subjects. Return the remaining
        rules for each subject.
        """
        rules = {
            kind: [rule for rule in enabled if rule.subject is not None and issubclass(kind, rule.subject)]
            for kind in dict.fromkeys(map(type, subjects))
        }
        heads = {
            kind: self._head(rule for rule in mine if rule.pure or rule.candidates) for kind, mine in rules.items()
        }
        keys = self._keys(subjects, heads)
        known = self.cache.get(_KIND, keys.values())
        fresh: dict[str, bytes] = {}
        looks: dict[int, _Look] = {}
        left: list[int] = []

        def look_at(number: int) -> list[Diagnostic]:
            subject = subjects[number]
            head, key = heads[type(subject)], keys.get(id(subject), "")
            looks[number], sound = self._look(rules[type(subject)], subject, project)
            kept = _kept(subject, head)
            if sound and kept is not None:
                kept.put(head, msgspec.msgpack.encode(looks[number]))
            elif sound and key:
                fresh[key] = msgspec.msgpack.encode(looks[number])
            project.pump()
            return looks[number].findings

        for number, subject in enumerate(subjects):
            kept, key = _kept(subject, heads[type(subject)]), keys.get(id(subject), "")
            look = decoded(kept.get(heads[type(subject)]) if kept is not None else known.get(key), _Look)
            if look is not None:
                looks[number] = look
            elif key or not project.settled:
                look_at(number)
            else:  # no result goes to `fresh`, so other processes may share the work
                left.append(number)
        found = self._divide(len(left), lambda place: look_at(left[place]), project, loaded)
        for number, findings in zip(left, found, strict=True):
            looks.setdefault(number, _Look(findings, []))
        self.cache.put(_KIND, fresh)
        rest: Rest = []
        for number, subject in enumerate(subjects):
            self.found += looks[number].findings
            mine, idle = rules[type(subject)], looks[number].idle
            rest.append(([rule for rule in mine if not rule.pure and rule.code not in idle], subject))
        return rest

    def _keys(self, subjects: Sequence[object], heads: dict[type, str]) -> dict[int, str]:
        """The cache key of each subject that has a ``content_key`` and rules to which it matters."""
        found: dict[int, str] = {}
        for subject in subjects:
            content = getattr(subject, "content_key", None)
            if content and heads[type(subject)]:
                text = f"{heads[type(subject)]} {content}"
                found[id(subject)] = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return found

    def _head(self, rules: Iterable[Rule]) -> str:
        codes = [rule.code for rule in rules]
        options = [repr(self.settings.rule_options.get(code)) for code in codes]
        return f"{self.stamp} {codes} {options}" if codes and self.stamp else ""

    def _look(self, rules: Sequence[Rule], subject: object, project: Project) -> tuple[_Look, bool]:
        """Return the findings that only depend on the subject's content, and whether no rule failed on it."""
        crashed, self.crashed = self.crashed, False
        findings: list[Diagnostic] = []
        for rule in rules:
            if rule.pure:
                self._run_rule(rule, subject, findings)
                project.pump()
        idle = [
            rule.code
            for rule in rules
            if rule.candidates is not None and not self._has_any(rule, rule.candidates, subject)
        ]
        sound, self.crashed = not self.crashed, self.crashed or crashed
        return _Look(findings, idle), sound

    def _has_any(self, rule: Rule, candidates: Callable[[Any], Iterable[object]], subject: object) -> bool:
        started = time.perf_counter()
        try:
            return any(True for _ in candidates(subject))
        except Exception:
            return True  # the rule will fail of it, too, and that is reported
        finally:
            self._timing(rule).seconds += time.perf_counter() - started

    def _timing(self, rule: Rule) -> Timing:
        timing = self.timings.get(rule.code)
        if timing is None:
            timing = self.timings[rule.code] = Timing()
        return timing

    def _yielded(self, rule: Rule, subject: object) -> Iterable[Diagnostic]:
        found: Iterable[Diagnostic] | None = rule(subject, self.settings.rule_options.get(rule.code))
        if found is None:
            refuse("it returned None; a rule yields diagnostics, or returns a list of them", rule.check)
        return found

    def _run_rule(self, rule: Rule, subject: object, found: list[Diagnostic]) -> None:
        """Add a rule's findings in a subject to the results."""
        timing = self._timing(rule)
        before, started = len(found), time.perf_counter()
        doubt = getattr(subject, "release_doubt", "") if rule.by_release else ""
        try:
            # What the rule yields before it fails is kept.
            for item in self._yielded(rule, subject):
                check_diagnostic(item, rule)
                named = within_limits(msgspec.structs.replace(item, code=rule.code))
                found.append(doubted(named, doubt) if doubt else named)
                if len(found) - before >= MAX_OF_SUBJECT:
                    found.append(stopped(rule.code, rule.name, item.place))
                    break
        except Exception as error:
            # Foreign code runs here: a plugin's rule must not take the run down with it.
            if rule.code not in self.crashes:
                self._failed(error)
            self.crashed = True
            self.failed.add(rule.code)
            name = getattr(subject, "name", None) or type(subject).__name__
            place, reason = getattr(subject, "place", None), failure(error, rule.check)
            crash = self.crashes.setdefault(rule.code, Crash(f"{rule.code} ({rule.name})", f"{name}", place, reason))
            crash.subjects += 1
        timing.runs += 1
        timing.seconds += time.perf_counter() - started
        timing.findings += len(found) - before


def doubted(item: Diagnostic, doubt: str) -> Diagnostic:
    """Return a finding that depends on tables of a release which may not apply: a warning at most, without a safe fix."""
    fix = msgspec.structs.replace(item.fix, safety="unsafe", why_unsafe=doubt) if item.fix is not None else None
    severity = Severity.WARNING if item.severity is Severity.ERROR else item.severity
    return msgspec.structs.replace(item, message=f"{item.message} ({doubt})", severity=severity, fix=fix)

"""A first look after an edit: findings in the subjects that it touches, together with those of the last run in all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import msgspec

from opschema_cli import suggestions
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.execute import Executor
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.rule import Rule
from opschema_cli.lint.runner import Job, PackFindings
from opschema_cli.project import Project
from opschema_cli.source.text import Span


class Change(msgspec.Struct, frozen=True):
    """The part of a file in which an old and a new text differ: ``start`` is the same in both."""

    path: str
    start: int
    old_end: int
    new_end: int

    @classmethod
    def between(cls, path: str, old: str, new: str) -> Change:
        """The change from one text to another."""
        start = _same(old, new)
        tail = _same(old[start:][::-1], new[start:][::-1])
        return cls(path, start, len(old) - tail, len(new) - tail)

    @property
    def edited(self) -> Span:
        """The span of the new text that differs."""
        return Span(self.start, self.new_end)

    def moved(self, span: Span) -> Span:
        """Return the position of a span of the old text in the new one; one that ends in the edited part covers all of that."""
        shift = self.new_end - self.old_end
        start, end = span
        moved_end = end if end <= self.start else end + shift if end >= self.old_end else self.new_end
        if start == end:
            return Span(moved_end, moved_end)
        moved_start = start + shift if start >= self.old_end else min(start, self.start)
        return Span(moved_start, max(moved_start, moved_end))


def moved_findings(findings: PackFindings, changes: Iterable[Change]) -> PackFindings:
    """Return findings in old texts at their places in the new ones, without their fixes."""
    by_path = {change.path: change for change in changes}

    def moved(place: Place) -> Place:
        return Place(place.path, by_path[place.path].moved(place.span)) if place.path in by_path else place

    def finding(item: Diagnostic) -> Diagnostic:
        related = tuple(msgspec.structs.replace(other, place=moved(other.place)) for other in item.related)
        return msgspec.structs.replace(item, place=moved(item.place), related=related, fix=None)

    def entry(item: Entry) -> Entry:
        change = by_path.get(item.path)
        if change is None:
            return item
        return msgspec.structs.replace(item, key=change.moved(item.key), span=change.moved(item.span))

    return msgspec.structs.replace(
        findings, found=list(map(finding, findings.found)), entries=list(map(entry, findings.entries))
    )


def _same(left: str, right: str) -> int:
    """Return the length of the common prefix of two texts."""
    length = min(len(left), len(right))
    if left[:length] == right[:length]:
        return length
    return next(index for index in range(length) if left[index] != right[index])


def look(
    job: Job, pack: Pack, project: Project, changes: Sequence[Change], before: PackFindings
) -> PackFindings | None:
    """Return the findings of a pack in the subjects that changes touch, with those of ``before`` in others; None if the pack
    fails, or finds nothing of its kind.
    """
    suggestions.start_anew()
    executor = Executor(job.settings, project.cache, job.stamp)
    loaded = executor.load(pack, project)
    if loaded is None:
        return None
    loaded.count()
    project.claim(loaded.files)
    subjects = executor.run_touched(pack, loaded, project, {change.path: change.edited for change in changes})
    project.settle()
    if executor.crashed:
        return None
    moved = moved_findings(before, changes)
    paths = {change.path for change in changes}
    anew = _Anew(job, pack, loaded, subjects, paths)
    broken = paths.intersection(path for _, path in project.problems)
    kept = [item for item in moved.found if item.place.path not in broken and not anew.covers(item)]
    return msgspec.structs.replace(moved, entries=loaded.entries, found=[*kept, *executor.found])


class _Anew:
    """The rules that ran again: those for the edited files, and those for the touched ops."""

    def __init__(self, job: Job, pack: Pack, loaded: Loaded, subjects: Sequence[object], paths: Set[str]) -> None:
        self._paths = paths
        self._names = {str(getattr(subject, "name", "")) for subject in subjects}
        self._entries = [entry for entry in loaded.entries if entry.name in self._names]
        rules = [rule for rule in pack.rules if rule.code in job.settings.enabled]
        files = [subject for subject in subjects if getattr(subject, "name", "") in paths]
        self._of_files = _codes(rules, files)
        self._of_ops = _codes(rules, [subject for subject in subjects if subject not in files])

    def covers(self, item: Diagnostic) -> bool:
        """Whether a finding, at its place in the new text, belongs to a rule that has checked its subject again."""
        if item.code in self._of_files and item.place.path in self._paths:
            return True
        about = not self._names.isdisjoint(item.ops) or any(_lies_in(item.place, entry) for entry in self._entries)
        return about and item.code in self._of_ops


def _codes(rules: Iterable[Rule], subjects: Sequence[object]) -> set[str]:
    """The codes of the rules that see any of these subjects."""
    return {
        rule.code
        for rule in rules
        if rule.subject is not None and any(isinstance(subject, rule.subject) for subject in subjects)
    }


def _lies_in(place: Place, entry: Entry) -> bool:
    start, end = place.span
    return entry.path == place.path and entry.key.start <= start and end <= entry.span.end

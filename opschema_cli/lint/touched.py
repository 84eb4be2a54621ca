"""A first look after an edit: findings in the subjects that it touches, beside those of the last run in all others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from opschema_cli import suggestions
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.execute import Executor
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.lint.pack import Pack
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

    def moved(self, place: Place) -> Place:
        """A place of the old text in the new one; what lies in the edited part covers all of that."""
        return Place(place.path, self._span(place.span)) if place.path == self.path else place

    def _span(self, span: Span) -> Span:
        shift = self.new_end - self.old_end
        start = span.start if span.start <= self.start else max(span.start + shift, self.start)
        end = span.end + shift if span.end >= self.old_end else min(span.end, self.new_end)
        return Span(start, max(start, end))

    def moved_findings(self, findings: PackFindings) -> PackFindings:
        """Findings in the old text at their places in the new one. Their fixes are left out."""
        return msgspec.structs.replace(
            findings,
            found=[self._finding(item) for item in findings.found],
            entries=[self._entry(item) for item in findings.entries],
        )

    def _finding(self, item: Diagnostic) -> Diagnostic:
        related = tuple(msgspec.structs.replace(other, place=self.moved(other.place)) for other in item.related)
        return msgspec.structs.replace(item, place=self.moved(item.place), related=related, fix=None)

    def _entry(self, item: Entry) -> Entry:
        if item.path != self.path:
            return item
        return msgspec.structs.replace(item, key=self._span(item.key), span=self._span(item.span))


def _same(left: str, right: str) -> int:
    """The number of characters with which both texts begin."""
    length = min(len(left), len(right))
    if left[:length] == right[:length]:
        return length
    return next(index for index in range(length) if left[index] != right[index])


def look(job: Job, pack: Pack, project: Project, change: Change, before: PackFindings) -> PackFindings | None:
    """The findings of a pack in the subjects that a change touches, with those ``before`` it in others; None if the pack fails, or
    finds nothing of its kind.
    """
    suggestions.start_anew()
    executor = Executor(job.settings, project.cache, job.stamp)
    loaded = executor.load(pack, project)
    if loaded is None:
        return None
    project.claim(loaded.files)
    subjects = executor.run_touched(pack, loaded, project, {change.path: change.edited})
    project.settle()
    if executor.crashed:
        return None
    moved = change.moved_findings(before)
    anew = _Anew(job, pack, loaded, subjects)
    broken = any(path == change.path for _, path in project.problems)
    kept = [item for item in moved.found if not anew.covers(item) and not (broken and item.place.path == change.path)]
    return msgspec.structs.replace(moved, entries=loaded.entries, found=[*kept, *executor.found])


class _Anew:
    """What was judged anew: the rules for the subjects, and the ops that these are."""

    def __init__(self, job: Job, pack: Pack, loaded: Loaded, subjects: Sequence[object]) -> None:
        kinds = set(map(type, subjects))
        self.codes = {
            rule.code
            for rule in pack.rules
            if rule.code in job.settings.enabled and any(_sees(rule.subject, kind) for kind in kinds)
        }
        self.names = {name for subject in subjects if isinstance(name := getattr(subject, "name", None), str)}
        self.entries = [entry for entry in loaded.entries if entry.name in self.names]

    def covers(self, item: Diagnostic) -> bool:
        """Whether a finding was judged anew, at its place of now."""
        return item.code in self.codes and (not self.names.isdisjoint(item.ops) or _within(item.place, self.entries))


def _sees(subject: type | None, kind: type) -> bool:
    return subject is not None and issubclass(kind, subject)


def _within(place: Place, entries: Collection[Entry]) -> bool:
    return any(
        entry.path == place.path and entry.key.start <= place.span.start and place.span.end <= entry.span.end
        for entry in entries
    )

"""Runs migrations on one draft: finds their sites, leaves the excluded ones alone, and verifies the result.

A migration promises to leave no site that it migrated: it finds none in its own draft. So a second run changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from opschema_cli.authoring import described, failure, refuse
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import Settings
from opschema_cli.lint.suppress import MARK, apply_suppressions, find_suppressions
from opschema_cli.migrate.choose import Choice
from opschema_cli.migrate.draft import Change, Draft, DraftError
from opschema_cli.migrate.migration import Migration, Note, Site
from opschema_cli.project import Project
from opschema_cli.source.text import Position, Source

T = TypeVar("T", Site, Note)

Status = Literal["migrated", "suppressed", "skipped", "left"]


class MigrationFailure(Exception):  # noqa: N818 - the failure of foreign code, not an error to raise there
    """A migration raised an exception or did not keep its contract. This is a bug in the migration, not a user error."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"the migration `{name}` failed: {what}")


class Task(msgspec.Struct, frozen=True):
    """One migration to run: its options filled, and its pack's loader."""

    migration: Migration
    options: object
    load: Callable[[Project], Loaded]


class Chosen(msgspec.Struct, frozen=True):
    """A site, its position, and its status. For a ``left`` site a note at the same place gives the reason."""

    site: Site
    position: Position
    status: Status


class Left(msgspec.Struct, frozen=True):
    """A note, and its position in the finished draft."""

    note: Note
    position: Position


class Result(msgspec.Struct, frozen=True):
    """Result of one migration; ``changes`` are those between the draft before it and the draft after it."""

    migration: Migration
    sites: Sequence[Chosen]
    notes: Sequence[Left]
    changes: Sequence[Change]
    reason: str = ""
    """The reason why it found no site; empty where it found some."""


class Ground(msgspec.Struct, frozen=True):
    """Reasons to leave sites alone: suppressions by the rules of ``registry``, and the user's choice."""

    registry: Registry
    settings: Settings
    choice: Choice


def load_migrations(pack: Pack) -> tuple[Migration, ...]:
    """A pack's migrations.

    Raises:
        OpschemaError: they cannot be imported.
    """
    try:
        return pack.all_migrations()
    except Exception as error:
        # Foreign code runs here, and may raise whatever it likes.
        raise OpschemaError(f"the migrations of the pack `{pack.name}` cannot be loaded: {failure(error)}") from error


def find(draft: Draft, task: Task) -> list[Site]:
    """The sites of a migration, by place.

    Raises:
        MigrationFailure: it raises.
        OpschemaError: it refuses its options.
    """
    draft.use(task.load)
    with _foreign(task):
        found = list(_checked(task, task.migration.find(draft, task.options), Site, "its `find` yields"))
    return sorted(found, key=lambda site: (site.place.path, site.place.span))


def _checked(task: Task, found: Iterable[T] | None, kind: type[T], what: str) -> Iterator[T]:
    """The sites or notes of a migration, checked as it yields them."""
    if found is None:
        refuse(f"{what} nothing but returns None{task.migration.written}")
    for item in found:
        if not isinstance(item, kind) or not isinstance(item.place, Place):
            refuse(f"{what} {described(item)}, not a `{kind.__name__}(place, ...)`{task.migration.written}")
        yield item


def not_seen(draft: Draft, item: Migration) -> str:
    """Reason why a migration cannot search the tree, with advice; empty if it can."""
    missing = next((found for found in draft.project.missing if found.need in item.needs), None)
    return f"{missing.reason} ({missing.hint})" if missing is not None else ""


def why_idle(draft: Draft, item: Migration) -> str:
    """Return the reason why a migration finds nothing in the draft that it last searched."""
    unseen = not_seen(draft, item)
    if unseen:
        return f"could not look: {unseen}"
    if item.scope is not None and not any(isinstance(found, item.scope.types) for found in draft.loaded.subjects):
        return item.scope.absent
    return item.settled or "nothing is left to change"


def choose(draft: Draft, task: Task, ground: Ground) -> list[Chosen]:
    """Return the sites of a migration, and whether each is migrated or left alone.

    Raises:
        MigrationFailure, OpschemaError: as for :func:`find`.
    """
    sites = find(draft, task)
    ground.choice.learn(draft, sites)
    suppressed = _suppressed(draft, sites, ground)
    chosen: list[Chosen] = []
    for number, site in enumerate(sites):
        status: Status = "suppressed" if number in suppressed else "migrated"
        if not ground.choice.takes(draft, site):
            status = "skipped"
        chosen.append(Chosen(site, position(draft, site.place), status))
    return chosen


def migrate_all(draft: Draft, tasks: Sequence[Task], ground: Ground) -> list[Result]:
    """Run migrations one after the other in one draft.

    Raises:
        MigrationFailure: one raises, leaves a file that does not parse, or finds in its draft what it should have migrated.
        OpschemaError: one refuses its options.
    """
    draft.project.with_trees = any(task.migration.rewrites_trees for task in tasks)
    runs = [_run(draft, task, ground) for task in tasks]
    for run in runs:
        _check_gone(draft, run)
    return [
        Result(run.task.migration, run.chosen, [_left(draft, *item) for item in run.notes], run.changes, run.reason)
        for run in runs
    ]


class _Run(msgspec.Struct, frozen=True):
    """A migration that ran; ``since`` is the revision of the draft that it began with, notes are with theirs."""

    task: Task
    since: int
    chosen: Sequence[Chosen]
    notes: Sequence[tuple[int, Note]]
    changes: Sequence[Change]
    reason: str


def _run(draft: Draft, task: Task, ground: Ground) -> _Run:
    before, since = draft.project, draft.revision
    chosen = choose(draft, task, ground)
    reason = "" if chosen else why_idle(draft, task.migration)
    wanted = [item.site for item in chosen if item.status == "migrated"]
    notes: list[tuple[int, Note]] = []
    if wanted:
        with _foreign(task):
            yielded = task.migration.apply(draft, wanted, task.options)
            notes += ((draft.revision, note) for note in _checked(task, yielded or (), Note, "it yields"))
            draft.settle()
    return _Run(task, since, _without_left(draft, chosen, notes, since), notes, draft.changes_since(before), reason)


def _without_left(
    draft: Draft, chosen: Sequence[Chosen], notes: Sequence[tuple[int, Note]], since: int
) -> list[Chosen]:
    """Return the sites, with those marked as left that the migration did not change and that have a note saying so."""
    places = {draft.forward(note.place, revision) for revision, note in notes if note.leaves_site}
    return [
        replace(item, status="left") if places and draft.forward(item.site.place, since) in places else item
        for item in chosen
    ]


def _check_gone(draft: Draft, run: _Run) -> None:
    """Check that a migration finds no more than the sites that it was to leave alone."""
    stayed = [_key(draft, item.site, run.since) for item in run.chosen if item.status != "migrated"]
    known = {key for keys in stayed for key in keys}
    found = find(draft, run.task)
    fresh = [site for site in found if not known.intersection(_key(draft, site, draft.revision))]
    if fresh or len(found) > len(stayed):
        site = (fresh or found)[0]
        line = position(draft, site.place).line
        what = f"it would have to run again: {site.place.path}:{line} ({site.title})"
        raise MigrationFailure(run.task.migration.name, what)


def _key(draft: Draft, site: Site, since: int) -> tuple[object, object]:
    """Identity of a site across edits: its place, or its name."""
    place = draft.forward(site.place, since)
    return (place.path, place.span.start), (place.path, site.title, site.ops)


def _left(draft: Draft, revision: int, note: Note) -> Left:
    place = draft.forward(note.place, revision)
    return Left(Note(place, note.message), position(draft, place))


def position(draft: Draft, place: Place) -> Position:
    """Line and column of a place in the draft; the first ones in a file that cannot be read."""
    source = draft.project.source(place.path)
    return Position(1, 1) if source is None else source.position(place.span.start)


def _suppressed(draft: Draft, sites: Sequence[Site], ground: Ground) -> set[int]:
    """The numbers of the sites at whose place a rule is suppressed."""
    project = draft.project

    marked: dict[str, Source] = {}
    for path in {site.place.path for site in sites if site.codes}:
        source = project.source(path)
        if source is not None and MARK in source.text:
            marked[path] = source
    suppressions = find_suppressions(marked.values(), ground.registry, draft.loaded.entries, project.yaml_root)
    # One finding of each rule at each site, distinguished by the number of the site.
    found = [Diagnostic(str(number), site.place, code=code) for number, site in enumerate(sites) for code in site.codes]
    found = [item for item in found if not ground.settings.ignored_in(item.place.path, item.code)]
    kept = Counter(int(item.message) for item in apply_suppressions(found, suppressions)[0])
    return {number for number, site in enumerate(sites) if kept[number] < len(site.codes)}


@contextmanager
def _foreign(task: Task) -> Iterator[None]:
    """Name the migration that fails."""
    try:
        yield
    except DraftError as error:
        raise MigrationFailure(task.migration.name, str(error)) from error
    except OpschemaError:
        raise
    except Exception as error:
        # Foreign code runs here: what a pack's migration raises is told as its own.
        raise MigrationFailure(task.migration.name, failure(error)) from error

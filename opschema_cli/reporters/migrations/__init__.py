"""Reports of migrations: the model that every format reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


class SiteReport(msgspec.Struct, frozen=True):
    """A site, its position (1-based), and its status."""

    path: str
    line: int
    column: int
    title: str
    ops: Sequence[str]
    status: Literal["migrated", "pending", "left", "suppressed", "skipped"]


class NoteReport(msgspec.Struct, frozen=True):
    """A place left for a person to handle, in the files after the migration."""

    path: str
    line: int
    column: int
    message: str


def by_place(notes: Iterable[NoteReport]) -> list[NoteReport]:
    """Notes by path and position, each once."""
    return sorted(set(notes), key=lambda note: (note.path, note.line, note.column, note.message))


class FileReport(msgspec.Struct, frozen=True):
    """A changed file's text before and after, or None where the file does not exist."""

    path: str
    before: str | None
    after: str | None

    @property
    def change(self) -> Literal["modified", "added", "removed"]:
        """Kind of change of the file."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "modified"


class MigrationReport(msgspec.Struct, frozen=True):
    """Report of one migration; ``reason`` says why it found no site."""

    name: str
    sites: Sequence[SiteReport]
    notes: Sequence[NoteReport]
    files: Sequence[FileReport]
    reason: str = ""


class RunReport(msgspec.Struct, frozen=True):
    """A sequence of migrations; ``files`` are their combined changes.

    ``mode`` is what was asked for: to see whether there is something to do, to show it, or to write it; ``asked`` are the
    names and options that were given.
    """

    migrations: Sequence[MigrationReport]
    files: Sequence[FileReport]
    mode: Literal["check", "diff", "apply"]
    asked: Sequence[str] = ()

    def sites(self, status: str) -> int:
        """Number of sites with this status."""
        return sum(site.status == status for item in self.migrations for site in item.sites)

    @property
    def notes(self) -> list[NoteReport]:
        """All notes, by place."""
        return by_place(note for item in self.migrations for note in item.notes)


class Listed(msgspec.Struct, frozen=True):
    """A migration in the list: its sites, or None where they are not known, the reason why there are none, and its options."""

    name: str
    summary: str
    sites: int | None
    reason: str = ""
    needs: Sequence[str] = ()
    options: Sequence[str] = ()

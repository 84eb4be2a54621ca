"""Counts declarations of operators that no pack reads, by cheap searches of text, so that a report can name them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Unread
from opschema_cli.project import Project
from opschema_cli.readings import Reading


class Sighting(msgspec.Struct, frozen=True):
    """A kind of declaration that a pack recognises and does not read.

    ``singular`` and ``plural`` name it. ``concerns`` selects files by path, ``counts`` gives the declarations in one of them; it
    sees bytes and must be fast. With ``per_file`` a file counts once. With that, and with ``if_unread``, declarations in a file
    that a pack reads do not count. One that is ``only_alone`` is counted only where nothing was linted: elsewhere its declarations
    say little.
    """

    singular: str
    plural: str
    concerns: Callable[[str], bool]
    counts: Reading[bytes, int]
    per_file: bool = False
    if_unread: bool = False
    only_alone: bool = False


def find_unread(
    project: Project, sightings: Iterable[Sighting], read: Container[str], *, nothing: bool
) -> Iterator[Unread]:
    """Count each kind in the workspace. ``read`` are the schema files of packs; ``nothing`` says that nothing was linted."""
    for sighting in sightings:
        if nothing or not sighting.only_alone:
            paths = filter(sighting.concerns, project.workspace.files)
            read_too = not (sighting.per_file or sighting.if_unread)
            found = project.scan(sighting.counts, (path for path in paths if read_too or path not in read))
            counts = {path: number for path, number in found if number}
            if counts:
                number = len(counts) if sighting.per_file else sum(counts.values())
                noun = sighting.singular if number == 1 else sighting.plural
                yield Unread(noun, number, len(counts), next(iter(counts)))

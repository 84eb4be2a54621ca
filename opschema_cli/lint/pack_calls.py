"""Calls a pack's functions and checks their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from opschema_cli.authoring import described, refuse
from opschema_cli.lint.lazy_pack import AnyPack
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack, nothing_read
from opschema_cli.project import Project


def finds(pack: AnyPack, project: Project, options: object) -> bool:
    """Whether a pack finds something of its kind.

    Raises:
        AuthorError: ``detect`` returns something else than a bool.
    """
    found: object = pack.detect(project, options)
    if not isinstance(found, bool):
        refuse(f"`detect` of the pack `{pack.name}` returned {described(found)}; it returns True or False", pack.detect)
    return found


def loaded_by(pack: Pack, project: Project, options: object, *, counted: bool = True) -> Loaded:
    """Return the subjects of a pack, with everything that :attr:`Loaded.counting` computes if they are to be ``counted`` now.

    Raises:
        AuthorError: ``load`` returns something else.
    """
    found: object = pack.load(project, options)
    if not isinstance(found, Loaded):
        refuse(f"`load` of the pack `{pack.name}` returned {described(found)}; it returns `Loaded(...)`", pack.load)
    if not isinstance(found.subjects, list):
        refuse(f"`load` of the pack `{pack.name}`: `subjects` is {described(found.subjects)}; it is a list", pack.load)
    if counted:
        found.count()
    return found


def read_on(
    pack: Pack, project: Project, options: object, reads: Callable[[Project, Any], Iterable[str]] = nothing_read
) -> None:
    """Have files parsed, step by step and alongside other work, that a pack will request in addition to those it always
    ``reads``.
    """
    if pack.speed.reads_on is not nothing_read:
        known = _named(reads, project, options)
        project.when_parsed(known, lambda: _read_further(pack, project, options, known))


def _read_further(pack: Pack, project: Project, options: object, known: frozenset[str]) -> None:
    more = _named(pack.speed.reads_on, project, options) - known
    if more:
        project.load_python(sorted(more), ahead=True, along=pack.speed.along)
        project.when_parsed(more, lambda: _read_further(pack, project, options, known | more))


def _named(reads: Callable[[Project, Any], Iterable[str]], project: Project, options: object) -> frozenset[str]:
    """Return the files that a function of a pack names; empty if it fails."""
    with suppress(Exception):  # foreign code; the failure is reported when it is called again
        return frozenset(path for path in reads(project, options) if isinstance(path, str))
    return frozenset()

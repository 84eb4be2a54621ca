"""The two sides of ``opschema diff``: the work tree, a revision or a folder, each with the contracts of its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from opschema_cli.cache import decoded
from opschema_cli.commands.output import ProgressBar, report_broken, report_missing
from opschema_cli.commands.revisions import asked_of, revision_key, revision_of, settings_key
from opschema_cli.diff.entries import Entry, entries_of
from opschema_cli.diff.lock import read_lock
from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_python
from opschema_cli.lint.builtin import UNREADABLE
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.operators import operators_of
from opschema_cli.lint.replay import run_key
from opschema_cli.lint.settings import pack_options
from opschema_cli.project import Project
from opschema_cli.regular_files import read_regular
from opschema_cli.session import MANY_MODULES, Session
from opschema_cli.source.text import Source, Span
from opschema_cli.workspace import Asked, ReadError, Workspace

_KIND = "contract"


class TableSide(msgspec.Struct, frozen=True):
    """One side. ``label`` names it, empty for the work tree; its files have the ``prefix`` in reports, empty for those of the tree.
    ``problems`` are the files that could not be read. ``key`` stands for its files and settings in the cache, ``session`` has its
    packs and options; a lock file has neither.
    """

    label: str
    project: Project
    entries: list[Entry]
    problems: list[Diagnostic]
    prefix: str = ""
    key: str = ""
    session: Session | None = None

    def path(self, path: str) -> str:
        """Return the path of a file as reports show it."""
        return self.prefix + path

    def place(self, place: Place | None) -> Place | None:
        """Return a place as reports show it."""
        return Place(self.path(place.path), place.span) if place is not None else None

    def source(self, path: str) -> Source | None:
        """Return the text of a file of this side; None if it cannot be read."""
        return self.project.source(path)


class _Stored(msgspec.Struct, array_like=True):
    asked: Asked
    entries: list[Entry]
    problems: list[Diagnostic]


def read_tree(session: Session, label: str = "", *, quiet: bool = False) -> TableSide:
    """The contracts of a session's workspace."""
    key = run_key(session.workspace, settings_key(session), session.code_stamp)
    return _read(session, session.workspace, label, key, quiet=quiet)


def read_revision(session: Session, commit: str, label: str, *, quiet: bool = False) -> TableSide:
    """The contracts of a commit, read with the configuration of the tree; the commit is not checked out.

    Raises:
        OpschemaError: the files of the commit cannot be listed.
    """
    return _read(session, revision_of(session, commit), label, revision_key(session, commit), quiet=quiet)


def read_lock_file(session: Session, path: Path, tree: TableSide) -> TableSide:
    """The contracts in a lock file, beside those of a ``tree``.

    Raises:
        OpschemaError: it cannot be read, or is no lock file.
    """
    try:
        text = read_regular(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise OpschemaError(f"{path} cannot be read: {error}") from None
    name = session.workspace.provide(path.as_posix(), text)
    return TableSide(name, tree.project, read_lock(text, name), [])


def read_ahead(session: Session, commit: str, label: str) -> Callable[[], None]:
    """Read the contracts of a commit into the cache in another process; calling the result waits for it. Only for a tree with
    little Python: both processes would parse it.
    """
    workspace = revision_of(session, commit)
    few = sum(map(is_python, workspace.files)) <= MANY_MODULES
    key = revision_key(session, commit)
    if not few or not session.forks or session.cache.get(_KIND, [key]):
        return lambda: None
    # Not at the top: most comparisons do without.
    from opschema_cli.lint.forked_run import ForkedRun
    from opschema_cli.lint.runner import PackFindings

    def read(report_parsed: Callable[[], None], publish: object) -> tuple[PackFindings, Project]:
        with closing(session.forked()) as child:
            side = read_revision(child, commit, label, quiet=True)
            report_parsed()
            return PackFindings(), side.project

    run = ForkedRun(read, PackFindings)
    session.helpers.callback(run.close)
    return run.wait_parsed


def _read(session: Session, workspace: Workspace, label: str, key: str, *, quiet: bool) -> TableSide:
    prefix = f"<{label}>/" if label else ""
    stored = decoded(session.cache.get(_KIND, [key]).get(key), _Stored)
    if stored is not None and workspace.ask_again(stored.asked) == []:
        return TableSide(label, Project(workspace), stored.entries, stored.problems, prefix, key, session)
    with ProgressBar(f"reading {label or 'the tree'}", "files", enabled=not quiet) as progress:
        project = Project(workspace, session.cache, lambda: session.parsers, progress, session.code_stamp)
        registry = session.registry_for(project, prefetch=True)
        options = pack_options(session.config, session.registry)
        entries = entries_of(operators_of(registry.packs, project, options))
    report_broken(registry)
    report_missing(project)
    unread = {(UNREADABLE.code, error.path): _unreadable(error) for error in workspace.unread}
    problems = [*{**project.problems, **unread}.values()]
    side = TableSide(label, project, entries, problems, prefix, key, session)
    project.save_readings()
    if not project.missing and not registry.broken:
        session.cache.put(_KIND, {key: msgspec.msgpack.encode(_Stored(asked_of(workspace), entries, side.problems))})
    return side


def _unreadable(error: ReadError) -> Diagnostic:
    """Return a finding on a file that could not be read, whether for its text or for a search."""
    message = f"this file cannot be read: {error.reason}"
    return Diagnostic(message, Place(error.path, Span(0, 0)), code=UNREADABLE.code)


def sources_of(sides: Iterable[TableSide]) -> Callable[[str], Source | None]:
    """A function that returns the text of a file by the path that reports show."""
    by_label = {side.prefix: side for side in sides if side.prefix}
    plain = next((side for side in sides if not side.prefix), None)

    def source(path: str) -> Source | None:
        for prefix, side in by_label.items():
            if path.startswith(prefix):
                found = side.source(path.removeprefix(prefix))
                return None if found is None else msgspec.structs.replace(found, path=path)
        return plain.source(path) if plain is not None else None

    return source

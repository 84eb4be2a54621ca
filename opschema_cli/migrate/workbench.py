"""The Python files that a migration rewrites in one round: few trees at a time, the changes of a site all or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.rewrite import Mark, Refused, Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Edit, EditConflictError, Span, apply_edits

OPEN_FILES = 8
"""Maximum number of open trees, more than one site usually needs. A tree takes about 150 times the memory of its text."""


class LeftAlone(Exception):  # noqa: N818 - an answer, not a fault
    """A site cannot be migrated with certainty: the place that shows it, and the reason."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class Workbench:
    """The rewrites of one round over a draft.

    Trees that were not used lately are dropped and parsed again on demand; their marks are kept. ``finish`` is called with
    a file before its edits are computed, and may mark more.
    """

    def __init__(self, draft: Draft, finish: Callable[[str, Rewrite], None] | None = None) -> None:
        self.draft = draft
        self._finish = finish
        self._marks: dict[str, list[Mark]] = {}
        self._open: dict[str, Rewrite] = {}
        self._used = 0
        self._edits: dict[str, tuple[int, list[Edit]]] = {}
        self._undo: list[dict[str, int]] = []

    @property
    def paths(self) -> Collection[str]:
        """The files that were used so far."""
        return self._marks.keys()

    def tree(self, path: str) -> PythonTree:
        """A file's tree, to read; nodes to change are looked up in the tree of :meth:`on`.

        Raises:
            LeftAlone: it does not parse.
        """
        with self.on(path) as rewrite:
            return rewrite.tree

    @contextmanager
    def on(self, path: str) -> Iterator[Rewrite]:
        """The rewrite of a file, valid within the context only.

        Raises:
            LeftAlone: a codemod refuses, or the file does not parse.
        """
        self._used += 1
        try:
            yield self._rewrite(path)
        except Refused as refused:
            problem = refused.problems[0]
            raise LeftAlone(Place(path, Span(problem.offset, problem.offset)), problem.reason) from None
        except (LookupError, TreeError) as error:
            raise LeftAlone(Place(path, Span(0, 0)), str(error)) from None
        finally:
            self._used -= 1
        if not self._used:
            self._trim()

    def _rewrite(self, path: str) -> Rewrite:
        rewrite = self._open.pop(path, None)
        if rewrite is None:
            rewrite = Rewrite(self.draft.tree(path), self._marks.get(path, []))
        self._open[path] = rewrite  # the last is the one used last
        self._marks[path] = rewrite.marks
        for undo in self._undo:
            undo.setdefault(path, len(rewrite.marks))
        return rewrite

    def _trim(self) -> None:
        """Drop the least recently used trees, and start parsing the probable new text of their files."""
        for path in list(self._open)[: max(0, len(self._open) - OPEN_FILES)]:
            edits = self.edits(path)
            if edits:
                self.draft.expect(path, edits)
            del self._open[path]

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Undo the marks made inside if a site is left alone."""
        undo: dict[str, int] = {}
        self._undo.append(undo)
        try:
            yield
        except LeftAlone:
            for path, count in undo.items():
                self._edits.pop(path, None)
                if path in self._open:
                    self._open[path].restore(count)
                del self._marks[path][count:]
            raise
        finally:
            self._undo.pop()

    def check(self) -> None:
        """Check that all marks so far can be applied together.

        Raises:
            LeftAlone: edits of a file overlap.
        """
        for path in list(self.paths):
            try:
                self.edits(path)
            except EditConflictError:
                raise LeftAlone(Place(path, Span(0, 0)), "the changes here overlap") from None

    def edits(self, path: str) -> list[Edit]:
        """The edits of a used file so far."""
        count, found = self._edits.get(path, (-1, []))
        if count != len(self._marks[path]):
            is_open = path in self._open
            rewrite = self._open[path] if is_open else self._rewrite(path)
            if self._finish is not None:
                self._finish(path, rewrite)
            found = rewrite.edits()
            self._edits[path] = (len(rewrite.marks), found)
            if not is_open:
                del self._open[path]
        return found

    def text(self, path: str) -> str:
        """The text of a used file with its edits so far."""
        return apply_edits(self.draft.text(path), self.edits(path))

    def commit(self) -> None:
        """Collect the edits of all files in the draft."""
        for path in list(self.paths):
            edits = self.edits(path)
            if edits:
                self.draft.edit(path, edits)
            self._open.pop(path, None)


def left(site: Site, found: LeftAlone) -> Iterator[Note]:
    """The notes on a site that is left unchanged."""
    if found.place == site.place:
        yield Note(site.place, f"{site.title} by hand: {found.reason}", leaves_site=True)
    else:
        yield Note(found.place, found.reason)
        yield Note(site.place, f"{site.title} by hand: elsewhere, {found.reason}", leaves_site=True)

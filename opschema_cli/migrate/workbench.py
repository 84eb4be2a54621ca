"""The Python files that a migration rewrites in one round; what belongs together is marked whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.rewrite import Refused, Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Edit, EditConflictError, Span


class LeftAlone(Exception):  # noqa: N818 - an answer, not a fault
    """A site cannot be migrated with certainty: the place that shows it, and why."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class Workbench:
    """The rewrites of one round over a draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._rewrites: dict[str, Rewrite] = {}

    @property
    def paths(self) -> list[str]:
        """The files that were asked for."""
        return list(self._rewrites)

    def tree(self, path: str) -> PythonTree:
        """A file's tree.

        Raises:
            LeftAlone: it does not parse.
        """
        with self.on(path) as rewrite:
            return rewrite.tree

    @contextmanager
    def on(self, path: str) -> Iterator[Rewrite]:
        """The rewrite of a file.

        Raises:
            LeftAlone: a codemod refuses, or the file does not parse.
        """
        try:
            if path not in self._rewrites:
                self._rewrites[path] = Rewrite(PythonTree.parse(self.draft.text(path)))
            yield self._rewrites[path]
        except Refused as refused:
            problem = refused.problems[0]
            raise LeftAlone(Place(path, Span(problem.offset, problem.offset)), problem.reason) from None
        except (LookupError, TreeError) as error:
            raise LeftAlone(Place(path, Span(0, 0)), str(error)) from None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Take back what is marked inside when something is left alone."""
        before = {path: len(rewrite.marks) for path, rewrite in self._rewrites.items()}
        try:
            yield
        except LeftAlone:
            for path, rewrite in self._rewrites.items():
                rewrite.restore(before.get(path, 0))
            raise

    def check(self) -> None:
        """Check that what is marked so far can be done together.

        Raises:
            LeftAlone: edits of a file overlap.
        """
        for path, rewrite in self._rewrites.items():
            try:
                rewrite.edits()
            except EditConflictError:
                raise LeftAlone(Place(path, Span(0, 0)), "what is to be changed here overlaps") from None

    def commit(self) -> None:
        """Collect the edits of all files in the draft."""
        for path, rewrite in self._rewrites.items():
            edits: list[Edit] = rewrite.edits()
            if edits:
                self.draft.edit(path, edits)


def left(site: Site, found: LeftAlone) -> Iterator[Note]:
    """The notes on a site that is left as it is."""
    if found.place == site.place:
        yield Note(site.place, f"{site.title} by hand: {found.reason}", leaves_site=True)
    else:
        yield Note(found.place, found.reason)
        yield Note(site.place, f"{site.title} by hand: elsewhere, {found.reason}", leaves_site=True)

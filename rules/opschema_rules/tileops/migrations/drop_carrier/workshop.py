"""The Python files that one round of the migration rewrites: few trees at a time, a group of ops all or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.rewrite import Mark, Refused, Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_rules.tileops.migrations.drop_carrier.left import LeftAlone

OPEN_FILES = 8
"""Files whose trees are kept, more than a group of ops is usually about; a tree takes about 150 times the space of its text."""


class Workshop:
    """The rewrites of one round over a draft.

    The trees of files that were not used lately are dropped; what is marked in them stays, and they are parsed again when
    they are asked for. ``finish`` is called with a file before its edits are computed, and may mark more.
    """

    def __init__(self, draft: Draft, finish: Callable[[str, Rewrite], None] | None = None) -> None:
        self.draft = draft
        self._finish = finish
        self._marks: dict[str, list[Mark]] = {}
        self._open: dict[str, Rewrite] = {}
        self._used = 0
        self._edits: dict[str, tuple[int, list[Edit]]] = {}
        self._undo: dict[str, int] | None = None

    @contextmanager
    def on(self, path: str) -> Iterator[Rewrite]:
        """The rewrite of a file; nothing of it is to be kept.

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
        if self._undo is not None:
            self._undo.setdefault(path, len(rewrite.marks))
        return rewrite

    def _trim(self) -> None:
        """Drop the trees of the files that were not used lately, which are probably done."""
        for path in list(self._open)[: max(0, len(self._open) - OPEN_FILES)]:
            edits = self.edits(path)
            if edits:
                self.draft.expect(path, edits)
            del self._open[path]

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Undo what is marked inside when something is left alone."""
        self._undo = {}
        try:
            yield
        except LeftAlone:
            for path, count in self._undo.items():
                self._edits.pop(path, None)
                if path in self._open:
                    self._open[path].restore(count)
                del self._marks[path][count:]
            raise
        finally:
            self._undo = None

    @property
    def paths(self) -> Collection[str]:
        """The files that were asked for so far."""
        return self._marks.keys()

    def edits(self, path: str) -> list[Edit]:
        """The edits of a file that was asked for, so far."""
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
        """The text of a file that was asked for, as it is to be so far."""
        return apply_edits(self.draft.text(path), self.edits(path))

    def commit(self) -> None:
        """Collect the edits of all files in the draft."""
        for path in list(self.paths):
            edits = self.edits(path)
            if edits:
                self.draft.edit(path, edits)
            self._open.pop(path, None)


_EXPRESSIONS: tuple[type[cst.BaseExpression], ...] = (
    cst.BooleanOperation, cst.Comparison, cst.UnaryOperation, cst.Call, cst.Name, cst.Attribute, cst.Subscript, cst.NamedExpr,
    cst.IfExp, cst.ListComp, cst.GeneratorExp, cst.List, cst.Tuple,
)  # fmt: skip


def expression_at(tree: PythonTree, span: Span) -> cst.BaseExpression:
    """The expression that is written at a span of the facts.

    Raises:
        LookupError: there is none.
    """
    for kind in _EXPRESSIONS:
        with suppress(LookupError):
            return tree.find(span, kind)
    raise LookupError(f"no expression is written at {span.start}-{span.end}")

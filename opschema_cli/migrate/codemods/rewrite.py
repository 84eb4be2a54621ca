"""One round of rewriting over one file: what codemods marked, and the edits that it comes to."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import libcst as cst

from opschema_cli.migrate.codemods.elements import WithComma, drop_elements, element_span
from opschema_cli.migrate.codemods.layout import removals
from opschema_cli.source.python_tree import PythonTree, Statement
from opschema_cli.source.text import Edit, EditConflictError, Span, apply_edits


class Problem(NamedTuple):
    """Why a codemod cannot be applied, and the character that shows it."""

    offset: int
    reason: str


class Refused(Exception):  # noqa: N818 - the answer of a codemod, not a fault of it
    """A codemod left the rewrite as it was, for these reasons."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("; ".join(problem.reason for problem in self.problems))


class _Move(NamedTuple):
    statement: cst.FunctionDef
    source: Span
    target: Span


class _Dropped(NamedTuple):
    elements: Sequence[WithComma]
    indexes: set[int]
    singleton_comma: bool


class Checkpoint(NamedTuple):
    """The marks of a rewrite at one time."""

    removed: dict[int, Statement]
    unwrapped: dict[int, cst.BaseSuite]
    dropped: dict[int, _Dropped]
    edits: list[Edit]
    moves: list[_Move]
    gone: list[Span]
    folded: set[int]


class Rewrite:
    """The marks of one round; they are turned into edits all at once, so that codemods compose."""

    def __init__(self, tree: PythonTree) -> None:
        self.tree = tree
        self._removed: dict[int, Statement] = {}
        self._unwrapped: dict[int, cst.BaseSuite] = {}
        self._dropped: dict[int, _Dropped] = {}
        self._edits: list[Edit] = []
        self._moves: list[_Move] = []
        self._gone: list[Span] = []
        self._folded: set[int] = set()

    # Marks

    def remove(self, *statements: Statement | cst.SimpleStatementLine) -> None:
        """Take out statements with the comments that are theirs."""
        for statement in statements:
            parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
            for part in parts:
                self._removed[id(part)] = part

    def replace(self, span: Span, text: str) -> None:
        """Write ``text`` in place of a span."""
        self._edits.append(Edit(Span(*span), text))
        if self.tree.text[span.start : span.end].strip():
            self._gone.append(Span(*span))

    def drop(self, elements: Sequence[WithComma], *indexes: int, singleton_comma: bool = False) -> None:
        """Take elements out of a list between commas; see :func:`~opschema_cli.migrate.codemods.elements.drop_elements`."""
        dropped = self._dropped.setdefault(id(elements[0]), _Dropped(elements, set(), singleton_comma))
        dropped.indexes.update(indexes)
        self._gone += [element_span(self.tree, elements[index]) for index in indexes]

    def fold(self, node: cst.If | cst.BaseExpression) -> None:
        """Note that an expression or ``if`` chain is folded, which is done once a round.

        Raises:
            Refused: it was folded already.
        """
        if id(node) in self._folded:
            raise Refused([Problem(self.tree.span(node).start, "it was folded already in this round")])
        self._folded.add(id(node))

    def inserts_at(self, offset: int) -> bool:
        """Whether text is inserted there already."""
        return any(edit.span == (offset, offset) for edit in self._edits)

    def unwrap(self, node: cst.If, suite: cst.BaseSuite, edits: Iterable[Edit]) -> None:
        """Note that of an ``if`` only one suite's statements are left, by way of these edits."""
        self._unwrapped[id(node)] = suite
        for span, text in edits:
            self.replace(span, text)

    def move(self, statement: cst.FunctionDef, source: Span, target: Span) -> None:
        """Take out ``statement``, but write its part ``source``, as edited by then, in place of ``target``."""
        self._moves.append(_Move(statement, source, target))
        self._gone += [target, Span(source.end, self.tree.span(statement).end)]

    def checkpoint(self) -> Checkpoint:
        """What is marked so far, for :meth:`restore`."""
        dropped = {key: item._replace(indexes=set(item.indexes)) for key, item in self._dropped.items()}
        rest = (list(self._edits), list(self._moves), list(self._gone), set(self._folded))
        return Checkpoint(dict(self._removed), dict(self._unwrapped), dropped, *rest)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take back what was marked since a checkpoint, which is used up."""
        self._removed, self._unwrapped, self._dropped = checkpoint[:3]
        self._edits, self._moves, self._gone, self._folded = checkpoint[3:]

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Take back what was marked inside if a codemod there refuses."""
        before = self.checkpoint()
        try:
            yield
        except Refused:
            self.restore(before)
            raise

    # Questions

    def is_gone(self, node: cst.CSTNode) -> bool:
        """Whether a node is in what was removed or replaced."""
        if id(node) in self._removed or any(id(item) in self._removed for item in self.tree.ancestors(node)):
            return True
        start, end = self.tree.span(node)
        return any(span.start <= start and end <= span.end for span in self._gone)

    def remaining(self, body: Sequence[cst.CSTNode]) -> Iterator[Statement]:
        """The statements of a body that are left, those of unwrapped conditions in their place."""
        for item in body:
            parts = item.body if isinstance(item, cst.SimpleStatementLine) else [item]
            for part in parts:
                if not isinstance(part, cst.BaseSmallStatement | cst.BaseCompoundStatement) or self.is_gone(part):
                    continue
                suite = self._unwrapped.get(id(part))
                if suite is None:
                    yield part
                else:
                    yield from self.remaining(suite.body)

    # Results

    def edits(self) -> list[Edit]:
        """The edits of the round, without overlaps.

        Raises:
            EditConflictError: two replacements overlap, and neither only removes.
        """
        marks = [*self._edits, *self._drops()]
        inside = merge(self.tree.text, [*marks, *removals(self.tree, self._removed.values())])
        if not self._moves:
            return inside
        moved = [self._moved(move, inside) for move in self._moves]
        removed = [*self._removed.values(), *(move.statement for move in self._moves)]
        outside = [
            edit
            for edit in merge(self.tree.text, [*marks, *removals(self.tree, removed)])
            if not any(_contains(move.target, edit.span) for move in self._moves)
        ]
        return merge(self.tree.text, [*outside, *moved])

    def text(self) -> str:
        """The text after the round."""
        return apply_edits(self.tree.text, self.edits())

    def _drops(self) -> Iterator[Edit]:
        for elements, indexes, singleton_comma in self._dropped.values():
            yield from drop_elements(self.tree, elements, indexes, singleton_comma=singleton_comma)

    def _moved(self, move: _Move, edits: Sequence[Edit]) -> Edit:
        start, end = move.source
        inside = [
            Edit(Span(span.start - start, min(span.end, end) - start), text)
            for span, text in edits
            if start <= span.start < end and (span.end <= end or not text)
        ]
        return Edit(move.target, apply_edits(self.tree.text[start:end], inside))


def merge(text: str, edits: Iterable[Edit]) -> list[Edit]:
    """The edits of a text in order, without overlaps.

    What is inside a removal goes with it, removals that overlap are joined, an indentation that was to change inside a
    replacement goes with that, and insertions at one place follow each other as given.

    Raises:
        EditConflictError: a replacement or insertion overlaps another otherwise.
    """
    distinct = list(dict.fromkeys(edits))
    removed = _joined(edit.span for edit in distinct if not edit.replacement)
    written = sorted((edit for edit in distinct if edit.replacement), key=lambda edit: edit.span)
    for before, after in pairwise(written):
        if after.span.start < before.span.end:
            raise EditConflictError(f"edits of {before.span} and {after.span} overlap")
    kept = [edit for edit in written if not _inside(removed, edit.span)]
    inserted: dict[int, str] = {}
    for (start, end), replacement in kept:
        if start == end:
            inserted[start] = inserted.get(start, "") + replacement
    emptied = [Edit(span, "") for span in removed if not _overwritten(text, kept, span)]
    spanning = [edit for edit in (*emptied, *kept) if edit.span.start < edit.span.end]
    merged = [Edit(span, inserted.pop(span.start, "") + replacement) for span, replacement in spanning]
    return sorted([*merged, *(Edit(Span(at, at), replacement) for at, replacement in inserted.items())])


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        elif span.start < span.end:
            joined.append(span)
    return joined


def _inside(removed: Sequence[Span], span: Span) -> bool:
    """Whether a span is in a removal; an insertion at its border is not."""
    at = bisect.bisect_right(removed, span.start, key=lambda item: item.start) - 1
    if at < 0 or span.end > removed[at].end:
        return False
    return span.start < span.end or removed[at].start < span.start < removed[at].end


def _overwritten(text: str, written: Sequence[Edit], span: Span) -> bool:
    """Whether a removal of white space is in a replacement."""
    at = bisect.bisect_right(written, span.start, key=lambda item: item.span.start) - 1
    around = written[max(at, 0) : at + 2]
    if not any(edit.span.start < span.end and span.start < edit.span.end for edit in around):
        return False
    if at >= 0 and _contains(written[at].span, span) and not text[span.start : span.end].strip():
        return True
    raise EditConflictError(f"a removal of {span} overlaps a replacement")


def _contains(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end

"""One round of rewriting of one file: the marks of the codemods, and the edits that they result in."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple, TypeAlias, cast

import libcst as cst

from opschema_cli.migrate.codemods.elements import WithComma, drop_elements, element_span
from opschema_cli.migrate.codemods.layout import removals
from opschema_cli.source.python_tree import PythonTree, Statement, is_statement
from opschema_cli.source.text import Edit, EditConflictError, Span, apply_edits


class Problem(NamedTuple):
    """The reason why a codemod cannot be applied, and the character that shows it."""

    offset: int
    reason: str


class Refused(Exception):  # noqa: N818 - the answer of a codemod, not a fault of it
    """A codemod left the rewrite as it was, for these reasons."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("; ".join(problem.reason for problem in self.problems))


class _Removed(NamedTuple):
    """A statement that goes."""

    statement: int


class _Replaced(NamedTuple):
    """A span that another text takes the place of."""

    edit: Edit


class _Dropped(NamedTuple):
    """Elements that are taken out of a list between commas."""

    elements: tuple[int, ...]
    indexes: tuple[int, ...]
    singleton_comma: bool


class _Folded(NamedTuple):
    """An expression or ``if`` chain that is folded."""

    node: int


class _Unwrapped(NamedTuple):
    """An ``if`` that is reduced to one suite's statements."""

    node: int
    suite: int


class _Moved(NamedTuple):
    """A function that is removed, except for its part ``source``, which is written in place of ``target``."""

    function: int
    source: Span
    target: Span


Mark: TypeAlias = "_Removed | _Replaced | _Dropped | _Folded | _Unwrapped | _Moved"
"""A mark of a codemod; nodes are identified by their index in the tree, so marks hold for any tree of the same text."""


class Rewrite:
    """The marks of one round; they are turned into edits all at once, so that codemods compose.

    ``marks`` are those of an earlier rewrite of the same text, to go on with: new ones are added to that list.
    """

    def __init__(self, tree: PythonTree, marks: list[Mark] | None = None) -> None:
        self.tree = tree
        self.marks = marks if marks is not None else []
        self._begin()

    def _begin(self) -> None:
        """Derive from the marks what has been removed."""
        self._removed: dict[int, Statement] = {}
        self._unwrapped: dict[int, int] = {}
        self._dropped: dict[int, set[int]] = {}
        self._folded: set[int] = set()
        self._gone = bytearray(len(self.tree.nodes))
        self._gone_spans = _Spans()
        for mark in self.marks:
            self._take(mark)

    def _mark(self, mark: Mark) -> None:
        self.marks.append(mark)
        self._take(mark)

    def _take(self, mark: Mark) -> None:
        tree = self.tree
        match mark:
            case _Removed(place):
                statement = tree.nodes[place]
                assert is_statement(statement)
                self._removed[place] = statement
                below = tree.places(statement)
                self._gone[below.start : below.stop] = b"\1" * len(below)
            case _Replaced(edit):
                if tree.text[edit.span.start : edit.span.end].strip():
                    self._gone_spans.add(edit.span)
            case _Dropped(elements, indexes):
                self._dropped.setdefault(elements[0], set()).update(indexes)
                for index in indexes:
                    self._gone_spans.add(element_span(tree, tree.nodes[elements[index]]))
            case _Folded(node):
                self._folded.add(node)
            case _Unwrapped(node, suite):
                self._unwrapped[node] = suite
            case _Moved(function, source, target):
                self._gone_spans.add(target)
                self._gone_spans.add(Span(source.end, tree.span(tree.nodes[function]).end))

    # Marks

    def remove(self, *statements: Statement | cst.SimpleStatementLine) -> None:
        """Remove statements together with their comments."""
        for statement in statements:
            parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
            for part in parts:
                self._mark(_Removed(self.tree.place(part)))

    def replace(self, span: Span, text: str) -> None:
        """Write ``text`` in place of a span."""
        self._mark(_Replaced(Edit(Span(*span), text)))

    def drop(self, elements: Sequence[WithComma], *indexes: int, singleton_comma: bool = False) -> None:
        """Remove elements from a comma-separated list; see :func:`~opschema_cli.migrate.codemods.elements.drop_elements`."""
        self._mark(_Dropped(tuple(map(self.tree.place, elements)), indexes, singleton_comma))

    def fold(self, node: cst.If | cst.BaseExpression) -> None:
        """Record that an expression or ``if`` chain is folded, which is done once per round.

        Raises:
            Refused: it was folded already.
        """
        place = self.tree.place(node)
        if place in self._folded:
            raise Refused([Problem(self.tree.span(node).start, "it was folded already in this round")])
        self._mark(_Folded(place))

    def inserts_at(self, offset: int) -> bool:
        """Whether text is inserted there already."""
        return any(edit.span == (offset, offset) for edit in self._replacements())

    def unwrap(self, node: cst.If, suite: cst.BaseSuite, edits: Iterable[Edit]) -> None:
        """Record that only one suite of an ``if`` is kept, and make these edits for it."""
        self._mark(_Unwrapped(self.tree.place(node), self.tree.place(suite)))
        for span, text in edits:
            self.replace(span, text)

    def move(self, function: cst.FunctionDef, source: Span, target: Span) -> None:
        """Remove ``function``, but write its part ``source``, with its edits, in place of ``target``."""
        self._mark(_Moved(self.tree.place(function), source, target))

    def restore(self, count: int) -> None:
        """Take back all marks but the first ``count``."""
        if count < len(self.marks):
            del self.marks[count:]
            self._begin()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Revert the marks made inside the block if a codemod in it refuses."""
        before = len(self.marks)
        try:
            yield
        except Refused:
            self.restore(before)
            raise

    # Questions

    def is_gone(self, node: cst.CSTNode) -> bool:
        """Whether a node was removed or replaced."""
        return bool(self._gone[self.tree.place(node)]) or self._gone_spans.hold(self.tree.span(node))

    def remaining(self, body: Sequence[cst.CSTNode]) -> Iterator[Statement]:
        """The statements of a body that are left, those of unwrapped conditions in their place."""
        for item in body:
            parts = item.body if isinstance(item, cst.SimpleStatementLine) else [item]
            for part in parts:
                if not is_statement(part) or self.is_gone(part):
                    continue
                place = self._unwrapped.get(self.tree.place(part))
                suite = self.tree.nodes[place] if place is not None else None
                if isinstance(suite, cst.BaseSuite):
                    yield from self.remaining(suite.body)
                else:
                    yield part

    # Results

    def edits(self) -> list[Edit]:
        """The edits of the round, without overlaps.

        Raises:
            EditConflictError: two replacements overlap, and neither only removes.
        """
        marks = [*self._replacements(), *self._drops()]
        inside = merge(self.tree.text, [*marks, *removals(self.tree, self._removed.values())])
        moves = [mark for mark in self.marks if isinstance(mark, _Moved)]
        if not moves:
            return inside
        moved = [self._moved(move, inside) for move in moves]
        functions = filter(is_statement, (self.tree.nodes[move.function] for move in moves))
        removed = [*self._removed.values(), *functions]
        outside = [
            edit
            for edit in merge(self.tree.text, [*marks, *removals(self.tree, removed)])
            if not any(_contains(move.target, edit.span) for move in moves)
        ]
        return merge(self.tree.text, [*outside, *moved])

    def text(self) -> str:
        """The text after the round."""
        return apply_edits(self.tree.text, self.edits())

    def _replacements(self) -> Iterator[Edit]:
        return (mark.edit for mark in self.marks if isinstance(mark, _Replaced))

    def _drops(self) -> Iterator[Edit]:
        lists = {mark.elements[0]: mark for mark in reversed(self.marks) if isinstance(mark, _Dropped)}
        for first, indexes in self._dropped.items():
            elements = cast("list[WithComma]", [self.tree.nodes[place] for place in lists[first].elements])
            yield from drop_elements(self.tree, elements, indexes, singleton_comma=lists[first].singleton_comma)

    def _moved(self, move: _Moved, edits: Sequence[Edit]) -> Edit:
        start, end = move.source
        inside = [
            Edit(Span(span.start - start, min(span.end, end) - start), text)
            for span, text in edits
            if start <= span.start < end and (span.end <= end or not text)
        ]
        return Edit(move.target, apply_edits(self.tree.text[start:end], inside))


class _Spans:
    """Spans, those inside of others left out, so that both starts and ends ascend."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, span: Span) -> None:
        if not self.hold(span):
            first = bisect.bisect_left(self._starts, span.start)
            after = bisect.bisect_right(self._ends, span.end, first)
            self._starts[first:after] = [span.start]
            self._ends[first:after] = [span.end]

    def hold(self, span: Span) -> bool:
        """Whether one of the spans contains another one completely."""
        at = bisect.bisect_right(self._starts, span.start) - 1
        return at >= 0 and span.end <= self._ends[at]


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

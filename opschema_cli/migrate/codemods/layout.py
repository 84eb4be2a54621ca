"""Comments and blank lines that are removed with a statement, and those that stay.

What goes takes its own-line comments right above it, its trailing comment and the comments indented below it. A section
comment (``# --- Title ---``, or a banner of rules) goes once all that it heads does: a title right above plain statements
heads them up to the next blank line, any other all statements up to the next such comment. Directives (``# fmt: off``)
and a file's first comment stay. Between two statements that stay, the larger of the two gaps around what went is left; a
block keeps no blank lines at its end, and a ``pass`` if nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, pairwise

import libcst as cst
import msgspec
from msgspec.structs import replace

from opschema_cli.source.python_tree import PythonTree, Statement
from opschema_cli.source.text import Edit, Span

_RULE = re.compile(r"#+\s*([-=~*#_+])\1{2,}#*\s*\Z")
_TITLE = re.compile(r"#+\s*([-=~*#_+])\1+\s*[^\s\-=~*#_+].*\1{2,}#*\s*\Z")
_DIRECTIVE = re.compile(
    r"#\s*(fmt|isort|yapf|ruff|mypy|flake8|pylint|pyright|pragma|clang-format)\s*:|#\s*(end)?region\b"
)


class _Item(msgspec.Struct, frozen=True):
    """A statement with its own comments, or comments that are no statement's; entire lines.

    ``code`` is where a statement itself begins; ``rank`` is 2 for a banner, 1 for a title, 0 for anything else;
    ``stays`` marks comments that are nobody's.
    """

    start: int
    end: int
    code: int | None = None
    rank: int = 0
    simple: bool = False
    stays: bool = False
    dropped: bool = False


def removals(tree: PythonTree, removed: Collection[Statement]) -> list[Edit]:
    """The edits that take out statements."""
    dropped = {id(statement) for statement in removed}
    outermost = [item for item in removed if not any(id(above) in dropped for above in tree.ancestors(item))]
    homes = {id(home): home for statement in outermost if (home := tree.parent(statement)) is not None}
    blocks: dict[int, cst.CSTNode] = {}
    edits: list[Edit] = []
    for home in homes.values():
        if isinstance(home, cst.SimpleStatementLine) and not all(id(part) in dropped for part in home.body):
            edits += _parts(tree, home.body, dropped)
        elif isinstance(home, cst.SimpleStatementSuite):
            edits += _one_line(tree, home, dropped)
        else:
            block = tree.parent(home) if isinstance(home, cst.SimpleStatementLine) else home
            if block is not None:
                blocks[id(block)] = block
    for block in blocks.values():
        if isinstance(block, cst.Module | cst.IndentedBlock):
            edits += _block(tree, block, dropped)
    return edits


def delete_lines(tree: PythonTree, start: int, end: int) -> Edit:
    """Delete entire lines; a file without a line end at its end stays so."""
    text = tree.text
    if end == len(text) and start > 0 and not text.endswith(("\n", "\r")):
        start = len(text[:start].removesuffix("\n").removesuffix("\r"))
    return Edit(Span(start, end), "")


# Statements joined by semicolons


def _one_line(tree: PythonTree, suite: cst.SimpleStatementSuite, dropped: Collection[int]) -> list[Edit]:
    if all(id(part) in dropped for part in suite.body):
        return _pass_for(Span(tree.span(suite.body[0]).start, tree.span(suite.body[-1]).end))
    return _parts(tree, suite.body, dropped)


def _parts(tree: PythonTree, body: Sequence[cst.BaseSmallStatement], dropped: Collection[int]) -> list[Edit]:
    edits = [
        Edit(Span(tree.span(part).start, tree.span(after).start), "")
        for part, after in pairwise(body)
        if id(part) in dropped
    ]
    last = max(index for index, part in enumerate(body) if id(part) not in dropped)
    if last < len(body) - 1:
        edits = [edit for edit in edits if edit.span.end <= tree.span(body[last]).start]
        edits.append(Edit(Span(tree.span(body[last]).end, tree.span(body[-1]).end), ""))
    return edits


# Entire lines


def _block(tree: PythonTree, block: cst.Module | cst.IndentedBlock, dropped: Collection[int]) -> list[Edit]:
    start = 0 if isinstance(block, cst.Module) else tree.line_end(tree.span(block.header).start)
    items = _headed(list(_items(tree, block, start, dropped)))
    edits: list[Edit] = []
    if isinstance(block, cst.IndentedBlock) and all(item.dropped for item in items if item.code is not None):
        at = next(index for index, item in enumerate(items) if item.code is not None)
        edits = _passed(tree, items[at])
        items[at] = replace(items[at], dropped=False)
    return [*edits, *_runs(tree, items, start)]


def _runs(tree: PythonTree, items: Sequence[_Item], start: int) -> Iterator[Edit]:
    at = 0
    for is_gone, run in groupby(items, key=lambda item: item.dropped):
        first, at = at, at + len(list(run))
        if not is_gone:
            continue
        left = items[first - 1].end if first else start
        if at == len(items):
            yield delete_lines(tree, left, items[at - 1].end)
        elif not first or items[first].start - left >= items[at].start - items[at - 1].end:
            yield delete_lines(tree, items[first].start, items[at].start)
        else:
            yield delete_lines(tree, left, items[at - 1].end)


def _passed(tree: PythonTree, item: _Item) -> list[Edit]:
    assert item.code is not None
    edits = _pass_for(Span(item.code, item.code + len(tree.text[item.code : item.end].rstrip())))
    comments_end = tree.line_start(item.code)
    return [*edits, Edit(Span(item.start, comments_end), "")] if item.start < comments_end else edits


def _pass_for(span: Span) -> list[Edit]:
    """A removal and an insertion, so that whatever else was to change there goes with it."""
    return [Edit(span, ""), Edit(Span(span.start, span.start), "pass")]


def _items(
    tree: PythonTree, block: cst.Module | cst.IndentedBlock, start: int, dropped: Collection[int]
) -> Iterator[_Item]:
    at = start
    for statement in block.body:
        outer = tree.outer(statement)
        top = tree.line_start(outer.start)
        comments = list(_comments(tree, at, top))
        attached = comments[-1] if comments and comments[-1].end == top else None
        own = attached is not None and not attached.rank and not attached.stays
        yield from comments[:-1] if own else comments
        simple = isinstance(statement, cst.SimpleStatementLine)
        at = _bottom(tree, outer, simple=simple)
        parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
        is_gone = all(id(part) in dropped for part in parts)
        begin = attached.start if own and attached is not None else top
        straight = simple or isinstance(statement, cst.For | cst.If | cst.With | cst.Try | cst.While)
        yield _Item(begin, at, outer.start, simple=straight, dropped=is_gone)
    yield from _comments(tree, at, _tail(tree, block, at))


def _comments(tree: PythonTree, start: int, end: int) -> Iterator[_Item]:
    """The comments between two statements, those of adjoining lines together."""
    at = start
    first: int | None = None
    while at < end:
        after = tree.line_end(at)
        if not tree.text[at:after].strip():
            if first is not None:
                yield _comment(tree, first, at)
            first = None
        elif first is None:
            first = at
        at = after
    if first is not None:
        yield _comment(tree, first, end)


def _comment(tree: PythonTree, start: int, end: int) -> _Item:
    lines = [line.strip() for line in tree.text[start:end].splitlines()]
    if start == 0 or any(_DIRECTIVE.match(line) for line in lines):
        return _Item(start, end, stays=True)
    if any(_RULE.match(line) for line in lines):
        return _Item(start, end, rank=2)
    return _Item(start, end, rank=1 if any(_TITLE.match(line) for line in lines) else 0)


def _bottom(tree: PythonTree, outer: Span, *, simple: bool) -> int:
    """The end of a statement's last line; of a compound one with the comments that are indented below it."""
    at = end = tree.line_end(outer.end)
    if simple:
        return end
    column = len(tree.indent(outer.start).expandtabs())
    while at < len(tree.text):
        after = tree.line_end(at)
        line = tree.text[at:after].strip()
        if line and (not line.startswith("#") or len(tree.indent(at).expandtabs()) <= column):
            break
        at = after
        end = after if line else end
    return end


def _tail(tree: PythonTree, block: cst.Module | cst.IndentedBlock, at: int) -> int:
    """The end of the comments that follow a block's last statement at its own depth."""
    column = len(tree.indent(tree.outer(block.body[-1]).start).expandtabs()) if block.body else 0
    end = at
    while at < len(tree.text):
        after = tree.line_end(at)
        line = tree.text[at:after].strip()
        if line and (not line.startswith("#") or len(tree.indent(at).expandtabs()) < column):
            break
        at = after
        end = after if line else end
    return end


# Section comments


def _headed(items: list[_Item]) -> list[_Item]:
    """Return the items, and drop the section comments whose sections are dropped entirely."""
    return [
        replace(item, dropped=_heads_nothing(items, index)) if item.rank else item for index, item in enumerate(items)
    ]


def _heads_nothing(items: Sequence[_Item], index: int) -> bool:
    headed = [item for item in _section(items, index) if item.code is not None]
    return bool(headed) and all(item.dropped for item in headed)


def _section(items: Sequence[_Item], index: int) -> Iterator[_Item]:
    title = items[index]
    following = items[index + 1] if index + 1 < len(items) else None
    paragraph = title.rank == 1 and following is not None and following.simple and following.start == title.end
    end = title.end
    for item in items[index + 1 :]:
        if item.rank >= title.rank or (paragraph and item.start > end):
            return
        yield item
        end = item.end

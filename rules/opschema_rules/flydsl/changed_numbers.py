"""Plain numbers that a GPU `if` changes: after it they are GPU values, which the program chooses."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from opschema_cli.evaluation.statements import all_statements, bound_by, own_expressions, targets
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import LEAVING, Expr, Statement
from opschema_cli.source.text import NestedSpans, Span

_NAMING = ("def", "class", "import", "case", "except", "global", "nonlocal")
"""Statements other than assignments that bind or declare names."""

_CHOOSING = frozenset({"ifexp", "boolop", "lambda", "listcomp", "setcomp", "dictcomp", "generator"})


class Change(msgspec.Struct, frozen=True, eq=False):
    """An `if` that assigns a name, by its condition. The code from ``start`` to ``end`` runs after it, and only then.

    Of a ``loop`` over ``range_constexpr`` that is what stands before the `if` and runs in each turn.
    """

    condition: Expr
    start: int
    end: int
    loop: Statement | None = None

    @property
    def counts(self) -> Sequence[Expr]:
        """The arguments of ``range_constexpr``, for a loop that may have only one iteration."""
        return self.loop.exprs[1].items[1:] if self.loop is not None else ()


class Changes:
    """The names that one function binds, and the `if` statements without ``const_expr`` that do."""

    def __init__(self, body: Body) -> None:
        self._changes: dict[str, list[Change]] = {}
        self._bound: dict[str, list[int]] = {}
        self._unknown: set[str] = set()
        self._statements = body.function.statements if body.function is not None else ()
        for item in all_statements(self._statements):
            for name in _bound(item):
                self._bound.setdefault(name, []).append(item.start)
            self._unknown.update(item.names if item.kind in _NAMING else ())
            self._unknown.update(part.items[0].text for part in own_expressions(item) if part.kind == "walrus")
        self._collect(self._statements)

    def _collect(self, statements: Sequence[Statement], loop: Statement | None = None) -> None:
        for item in statements:
            if item.kind == "if" and item.exprs[0].callee.rpartition(".")[2] != "const_expr":
                change = Change(item.exprs[0], item.end, statements[-1].end)
                for name in {name for inner in all_statements([item]) for name in _bound(inner)}:
                    self._changes.setdefault(name, []).append(change)
                    if loop is not None and not self._binds(name, item.end, loop.end):
                        self._changes[name].append(Change(item.exprs[0], statements[0].start, item.start, loop))
            for number, block in enumerate(item.blocks):
                self._collect(block, item if not number and _is_unrolled(item) else None)

    def before(self, name: str, at: int) -> Iterator[Change]:
        """Yield the changes of a name that run before a place and are not overwritten; only assignments are followed."""
        for change in self._changes.get(name, ()) if name not in self._unknown else ():
            reached = change.start <= at < change.end and not self._binds(name, change.start, at)
            if reached and (change.loop is None or self._parts.innermost(at) == _block(change.loop.blocks[0])):
                yield change

    @cached_property
    def _parts(self) -> NestedSpans:
        """The blocks of the function, and the expressions with parts that may not run."""
        items = list(all_statements(self._statements))
        choices = (part.span for item in items for part in own_expressions(item) if part.kind in _CHOOSING)
        return NestedSpans([*(_block(block) for item in items for block in item.blocks if block), *choices])

    def _binds(self, name: str, start: int, end: int) -> bool:
        """Whether a statement that begins in a range binds a name."""
        bound = self._bound[name]
        at = bisect_left(bound, start)
        return at < len(bound) and bound[at] < end


def may_change(body: Body) -> set[str]:
    """Return the names that are assigned a number and that a block may change, by facts alone."""
    assigns = body.scope.assigns
    plain = {item.target for item in assigns if item.value is not None and item.value.kind == "const"}
    return {item.target for item in assigns if not item.sure and item.target in plain}


def _is_unrolled(item: Statement) -> bool:
    """Whether a statement is a loop over ``range_constexpr`` without a statement that leaves it."""
    if item.kind != "for" or item.exprs[1].callee.rpartition(".")[2] != "range_constexpr":
        return False
    return not any(inner.kind in LEAVING for inner in all_statements(item.blocks[0]))


def _block(statements: Sequence[Statement]) -> Span:
    return Span(statements[0].start, statements[-1].end)


def _bound(item: Statement) -> Iterator[str]:
    if item.kind == "augassign":
        yield from bound_by(item.exprs[0])
    else:
        yield from (name for target in targets(item) for name in bound_by(target))

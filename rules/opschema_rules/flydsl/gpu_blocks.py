"""GPU blocks: the blocks of a traced function that FlyDSL makes functions of, so that Python does not run them as written.

These are the bodies of a `for` over ``range``, of a `while` and of an `if`, whether its condition is a GPU value or one of
Python. Blocks under ``const_expr``, other loops with the loops in them, and loops over ``range(..., init=...)`` stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Scope, Statement
from opschema_cli.source.text import Span
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.device_values import stays_python
from opschema_rules.flydsl.key import rewrites_blocks
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.needs import is_const_expr
from opschema_rules.flydsl.usage import is_meant_to_fail


class Step(msgspec.Struct, frozen=True, eq=False):
    """A block of ``statement`` that execution enters: ``gpu`` if FlyDSL makes a function of it, ``loop`` if it repeats."""

    statement: Statement
    block: int
    gpu: bool
    loop: bool

    def same(self, other: Step) -> bool:
        """Whether both enter the same block."""
        return self.statement is other.statement and self.block == other.block


class Stop(msgspec.Struct, frozen=True, eq=False):
    """A statement of a function and the blocks around it; ``followed`` if other statements of the function may run after it."""

    statement: Statement
    steps: tuple[Step, ...] = ()
    followed: bool = False

    @property
    def blocks(self) -> list[Step]:
        """The GPU blocks around it, the outermost first."""
        return [item for item in self.steps if item.gpu]

    @property
    def blocks_and_loops(self) -> list[Step]:
        """The GPU blocks and the loops around it, the outermost first."""
        return [item for item in self.steps if item.gpu or item.loop]


Finder: TypeAlias = "Callable[[FlyTree, Traced, Body], Iterable[Diagnostic]]"
"""Finds errors in the body of a traced function, or of a function inside it."""


def in_rewritten(tree: FlyTree, find: Finder) -> Iterator[Diagnostic]:
    """Yield the findings in each function that FlyDSL rewrites and in nested ones, without functions that are expected to fail."""
    for traced, body in _rewritten(tree):
        found = list(find(tree, traced, body))
        if found and not is_meant_to_fail(tree, traced.body):  # which takes longer than to find nothing
            yield from found


@lru_cache(maxsize=2)
def _rewritten(tree: FlyTree) -> list[tuple[Traced, Body]]:
    """Return the functions whose blocks FlyDSL rewrites, with nested ones, if the tree's release does that."""
    kept = tree.traced if rewrites_blocks(tree) else ()
    found = ((traced, body) for traced in kept for body in tree.within(traced))
    return [(traced, body) for traced, body in found if body.function is not None and tree.around(body) is traced]


def stops(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Stop]:
    """Yield the statements of a function, including those in blocks. Up to 0.1.8 FlyDSL runs some `while` loops as Python does."""
    rewrites_while = tree.contract.surely(Era.SPLIT, Era.CURRENT)
    yield from _Stops(traced, body, rewrites_while).of(
        body.function.statements if body.function is not None else (), (), False
    )


class _Stops(msgspec.Struct, frozen=True):
    traced: Traced
    body: Body
    rewrites_while: bool

    def of(self, statements: Sequence[Statement], steps: tuple[Step, ...], followed: bool) -> Iterator[Stop]:
        last = max((at for at, item in enumerate(statements) if not _does_nothing(item)), default=-1)
        for at, item in enumerate(statements):
            here = followed or at < last
            yield Stop(item, steps, here)
            for block, inner in enumerate(item.blocks):
                step = self._step(item, block)
                yield from self.of(inner, (*steps, step) if step else steps, here or bool(step and step.loop))

    def _step(self, item: Statement, block: int) -> Step | None:
        match item.kind:
            case "if":
                return Step(item, block, gpu=not is_const_expr(item.exprs[0]), loop=False)
            case "while" if block == 0:
                return Step(item, block, gpu=self.rewrites_while and not is_const_expr(item.exprs[0]), loop=True)
            case "for" if block == 0:
                gpu = is_gpu_loop(item.exprs[1]) and not stays_python(self.traced.body, self.body, item.start)
                return Step(item, block, gpu=gpu, loop=True)
        return None


def is_gpu_loop(iterable: Expr) -> bool:
    """Whether a `for` over an expression is a GPU loop whose body becomes a function."""
    return iterable.callee.rpartition(".")[2] == "range" and "init" not in iterable.keywords


def excludes(one: Sequence[Step], other: Sequence[Step]) -> bool:
    """Whether two paths lead through different branches of one `if` that no loop repeats."""
    for first, second in zip(one, other, strict=False):
        if first.statement is not second.statement or first.loop:
            return False
        if first.block != second.block:
            return True
    return False


def block_spans(scope: Scope) -> Iterator[Span]:
    """Yield the spans of possible GPU blocks of a function, a loop's with its variable, without decoding statements.

    Bodies of `while`, and blocks of `try` and `match`, are included: facts do not distinguish them.
    """
    decided = {span for item in scope.conditions for span in (item.body, item.orelse) if span is not None}
    for loop in scope.loops:
        if is_gpu_loop(loop.iterable):
            named = (item.start for item in scope.assigns if item.target in loop.targets)
            yield Span(max((at for at in named if at < loop.iterable.start), default=loop.body.start), loop.body.end)
    for item in scope.conditions:
        if item.kind == "if" and not is_const_expr(item.expr):
            yield item.body
            if item.orelse is not None:
                yield item.orelse
    yield from (span for span in scope.guarded if span not in decided)


def head(body: Body, item: Statement) -> str:
    """Return the source text of a block's first line, without line breaks."""
    text = body.file.text(item.exprs[-1])
    written = " ".join(text.split())
    if item.kind == "for":
        return f"for {body.file.text(item.exprs[0])} in {written}"
    return f"{item.kind} {written}"


def _does_nothing(item: Statement) -> bool:
    bare = item.kind == "return" and not returns_value(item)
    return bare or item.kind in ("pass", "def") or (item.kind == "expr" and item.exprs[0].kind in ("const", "fstring"))


def returns_value(item: Statement) -> bool:
    """Whether a `return` has a value other than None."""
    value = item.exprs[0] if item.exprs else None
    return value is not None and not (value.kind == "const" and value.value is None)

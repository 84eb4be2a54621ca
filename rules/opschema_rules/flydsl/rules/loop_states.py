"""Loops that carry values through `init` and `yield`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, excerpt
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.gpu_blocks import in_rewritten
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.operands import LONGEST
from opschema_rules.flydsl.possible_types import is_scalar, possible_of
from opschema_rules.flydsl.rebinding import is_bound_around
from opschema_rules.flydsl.value_classes import value_classes
from opschema_rules.flydsl.value_table import NUMERIC

_DISPLAYS = ("list", "tuple")
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%"})


@rule("FLY237", "loop-state", pure=True)
def loop_state(file: FlyFile) -> Iterator[Diagnostic]:
    """A loop with `init` whose body does not yield as many values.

    `for i, state in range(0, n, 1, init=[a, b])` is a GPU loop that begins with the values of `init`, and each iteration passes
    values to the next by `yield [c, d]`; its variables are the counter and a list of the values. A body without `yield`, a
    `yield` of nothing or of another number of values, an `init` that is a single number, and other variables raise when the
    function is traced.

    Only lists and tuples as they are written are counted.

    Bad:

    ```python
    @flyc.kernel
    def total(A: fx.Tensor, n: fx.Int32):
        for i, state in range(0, n, 1, init=[fx.Int32(0)]):
            A[i] = state[0]
    ```

    Bad:

    ```python
    @flyc.kernel
    def total(A: fx.Tensor, n: fx.Int32):
        for i, state in range(0, n, 1, init=[fx.Int32(0)]):
            last = yield [state[0] + 1, n]
        A[0] = last
    ```

    Good:

    ```python
    @flyc.kernel
    def total(A: fx.Tensor, n: fx.Int32):
        state = [n, n]
        for i in range(0, n, 1, init=None):
            A[i] = n
        for i, state in range(0, n, 1, init=[fx.Int32(0), *state]):
            last = yield [state[0] + 1, state[1], state[2]]
        for i, state in range(0, n, 1, init=[n]):
            for j, inner in range(0, n, 1, init=[n, n]):
                pair = yield [inner[1], inner[0]]
            last = yield pair[:1]
    ```
    """
    yield from in_rewritten(file.tree, _states)


def _states(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    if body.function is None or all(item.iterable.keyword("init") is None for item in body.scope.loops):
        return
    for loop in all_statements(body.statements):
        init = _init(loop)
        for at, message, related in _of_loop(tree, body, loop, init) if init is not None else ():
            if not may_pass(tree, body, at.start):
                yield Diagnostic(f"{message}: tracing raises", body.at(at), related, ops=(traced.title,))


def _of_loop(tree: FlyTree, body: Body, loop: Statement, init: Expr) -> Iterator[tuple[Expr, str, tuple[Related, ...]]]:
    yields, wrong = list(_yields(loop.blocks[0])), _target(tree, body, loop, init)
    if wrong:
        yield loop.exprs[0], wrong, ()
    related = (Related(body.at(init), "the values before the loop"),)
    if _is_number(tree, body, init):
        yield init, f"`init` is a list of values, and `{excerpt(body.file.text(init), LONGEST)}` is a number", ()
    elif not yields:
        yield (
            loop.exprs[1],
            "a loop with `init` passes values to the next iteration by `yield`, and this one has none",
            (),
        )
    for part in yields:
        given = part.items[0] if part.items else None
        counts = _count(init), _count(given) if given is not None else 0
        if counts[0] is not None and counts[1] is not None and counts[0] != counts[1]:
            yield part, f"`init` has {count(counts[0], 'value')}, and `yield` gives {counts[1]}", related


def _target(tree: FlyTree, body: Body, loop: Statement, init: Expr) -> str:
    """Return why the target of a loop with `init` does not match its values, a pair of the counter and the list; empty if it
    may.
    """
    target, given = loop.exprs[0], _count(init)
    if target.kind == "name":
        return _number(tree, body, loop, target.text)
    parts = target.elements
    if parts is None:
        return ""
    if len(parts) != 2:
        return f"a loop with `init` gives a pair of the counter and the values, not {count(len(parts), 'value')}"
    values = parts[1].elements
    if given is None or values is None or len(values) == given:
        return ""
    return f"`init` has {count(given, 'value')}, and the loop unpacks {len(values)}"


def _number(tree: FlyTree, body: Body, loop: Statement, name: str) -> str:
    """Return why the only variable of a loop with `init` is used as a number, if all its uses are."""
    start, end = loop.blocks[0][0].start, loop.end
    places = _uses(body).get(name, [])
    uses = set(places[bisect_left(places, start) : bisect_left(places, end)])
    if not uses or name in body.file.rebound or _is_rebound(body, name, start, end):
        return ""
    found: set[int] = set()
    for item in all_statements(loop.blocks[0]):
        for expr in own_expressions(item):
            if expr.kind == "binary" and expr.text in _ARITHMETIC:
                found.update(_as_numbers(tree, body, expr, name))
            elif is_scalar(expr.callee.rpartition(".")[2]) and tree.names.full(body, expr.callee):
                found.update(part.start for part in expr.items[1:] if part.text == name)
    if not uses <= found or any(is_bound_around(body, name, place) for place in uses):
        return ""
    return f"`{name}` is a pair of the counter and the values, not a number: write `for {name}, state in ...`"


@cached_on_argument
def _uses(body: Body) -> dict[str, list[int]]:
    """The places where a function uses names, in order."""
    return {name: sorted(use.start for use in uses) for name, uses in index_of(body).uses.items()}


def _is_rebound(body: Body, name: str, start: int, end: int) -> bool:
    """Whether the variable of a loop may be bound by anything else, or by a loop inside it."""
    loops = _loops(body).get(name, [])
    if len(loops) != len(body.scope.named.get(name, ())) or name in index_of(body).walruses:
        return True
    return bisect_left(loops, start) != bisect_left(loops, end)


@cached_on_argument
def _loops(body: Body) -> dict[str, list[int]]:
    """The places of the iterables of a function's loops, by their variables, in order."""
    found: dict[str, list[int]] = {}
    for item in sorted(body.scope.loops, key=lambda item: item.iterable.start):
        for name in item.targets:
            found.setdefault(name, []).append(item.iterable.start)
    return found


def _as_numbers(tree: FlyTree, body: Body, expr: Expr, name: str) -> Iterator[int]:
    """Yield the places of a name among the operands of an operation that does not accept a pair. Repetition, concatenation with
    another pair, and values of a format do.
    """
    for part, other in zip(expr.items, reversed(expr.items), strict=True):
        repeated = next((item for item in part.items if item.text == name and part.text == "*"), None)
        named = repeated if part.kind == "binary" and repeated is not None else part
        if named.text != name or named.kind != "name":
            continue
        if (
            expr.text in ("-", "/", "//")
            or (expr.text == "%" and part is expr.items[0])
            or (isinstance(other.value, int | float) and (expr.text == "+" or isinstance(other.value, float)))
            or value_classes(tree).of(body, other) == NUMERIC
        ):
            yield named.start


def _init(item: Statement) -> Expr | None:
    """Return the initial values of a GPU loop; `init=None` counts as none."""
    call = item.exprs[1] if item.kind == "for" and not item.text else None
    init = call.keyword("init") if call is not None and call.callee.rpartition(".")[2] == "range" else None
    return init if init is not None and (init.kind != "const" or init.value is not None) else None


def _yields(statements: Iterable[Statement]) -> Iterator[Expr]:
    """Yield the `yield` expressions in statements and their blocks, except in nested loops with their own values."""
    for item in statements:
        yield from (part for part in own_expressions(item) if part.kind == "yield")
        if _init(item) is None:
            for block in item.blocks:
                yield from _yields(block)


def _count(expr: Expr) -> int | None:
    """Return the number of items of a list or tuple literal."""
    counted = expr.kind in _DISPLAYS and not any(item.kind == "starred" for item in expr.items)
    return len(expr.items) if counted else None


def _is_number(tree: FlyTree, body: Body, init: Expr) -> bool:
    if init.kind == "const":
        return isinstance(init.value, int | float)
    return NUMERIC in possible_of(body, init) and value_classes(tree).of(body, init) == NUMERIC

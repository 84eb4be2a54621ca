"""Bounds and keywords of loops."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.statements import is_variable
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Expr, Loop
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import DeviceValues, device_values, stays_python
from opschema_rules.flydsl.gpu_blocks import in_rewritten, is_gpu_loop
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.number_types import I32_MAX, INT, NumberTypes

_WIDE = frozenset({"Int8", "Int16", "Int64", "Uint8", "Uint16", "Uint64", "float"})


@rule("FLY224", "loop-bounds", pure=True)
def loop_bounds(file: FlyFile) -> Iterator[Diagnostic]:
    """A bound or a keyword that a loop does not take.

    The bounds of a `for` over `range`, a GPU loop, are 32-bit numbers. An `fx.Int64`, an 8-bit or 16-bit number, a
    `float`, as `/` gives one, and a Python number beyond 32 bits raise `TypeError` when the function is traced.

    `range_constexpr` is a Python loop, so it has neither values that the loop carries (`init=`) nor hints for unrolling:
    its keywords raise `TypeError`. A bound that `/` computes is a `float`, which raises, too: divide with `//`.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        total = fx.Int64(n) * 64
        for i in range(total):
            A[i] = 0
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        for i in range(n / 4):
            A[i] = 0
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        for i, state in fx.range_constexpr(0, 4, 1, init=[n]):
            A[i] = state[0]
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, tile: fx.Constexpr[int]):
        for i in fx.range_constexpr(tile / 4):
            A[i] = 0
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        for i in range(fx.Int32(fx.Int64(n) * 64 // 64)):
            A[i] = 0
        for i in range(n // 4):
            A[i] = 0
        for i in fx.range_constexpr(8 // 2):
            A[i] = 0
    ```
    """
    yield from in_rewritten(file.tree, _wrong_bounds)


def _wrong_bounds(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    for loop in body.scope.loops:
        found = _of_loop(tree, traced, body, loop)
        yield from (item for item in found if not may_pass(tree, body, item.place.span.start))


def _of_loop(tree: FlyTree, traced: Traced, body: Body, loop: Loop) -> Iterator[Diagnostic]:
    if is_gpu_loop(loop.iterable) and not stays_python(traced.body, body, loop.iterable.start):
        yield from _bounds(tree, traced, body, loop)
    elif loop.iterable.callee.rpartition(".")[2] == "range_constexpr":
        yield from _keywords(tree, traced, body, loop.iterable)
        yield from _quotients(tree, traced, body, loop.iterable)


def _bounds(tree: FlyTree, traced: Traced, body: Body, loop: Loop) -> Iterator[Diagnostic]:
    types = NumberTypes(device_values(tree, traced))
    for bound in loop.iterable.positional():
        if bound.kind == "const" and isinstance(bound.value, int) and abs(bound.value) <= I32_MAX:
            continue
        found = types.of(body, bound)
        written = body.file.text(bound)
        if found in _WIDE or "Float" in found:
            what = f"a `{'' if found == 'float' else 'fx.'}{found}`"
        elif found == INT and _is_beyond(tree, body, bound):
            what = "beyond 32 bits"
        else:
            continue
        message = (
            f"`{written}` is {what}, and the bounds of a loop over `range` have 32 bits: tracing raises `TypeError`"
        )
        yield Diagnostic(f"{message}; make it an `fx.Int32`", body.at(bound), ops=(traced.title,))


def _is_beyond(tree: FlyTree, body: Body, bound: Expr) -> bool:
    found = tree.evaluator.fold(body, bound)
    return isinstance(found, Folded) and isinstance(found.value, int) and abs(found.value) > I32_MAX


def _keywords(tree: FlyTree, traced: Traced, body: Body, call: Expr) -> Iterator[Diagnostic]:
    for word, value in call.args:
        if word and word not in ("*", "**") and tree.names.called(body, call) == "range_constexpr":
            message = (
                f"`range_constexpr` is a Python loop, which takes no `{word}`: tracing raises `TypeError`; use `range`, or "
                "drop the keyword"
            )
            yield Diagnostic(message, body.at(value), ops=(traced.title,))


def _quotients(tree: FlyTree, traced: Traced, body: Body, call: Expr) -> Iterator[Diagnostic]:
    """Yield findings on bounds of a Python loop that `/` computes, which always gives a `float`."""
    values = device_values(tree, traced)
    for bound in call.positional():
        given = values.bindings(body, bound.text) if is_variable(bound) else [bound]
        made = given[0] if given is not None and len(given) == 1 else None
        if not isinstance(made, Expr) or made.kind != "binary" or made.text != "/" or values.of(body, bound):
            continue
        if any(_is_instance(values, body, item) for item in made.items):
            continue
        if tree.names.called(body, call) == "range_constexpr":
            message = (
                f"`{body.file.text(made)}` is a `float`, and `range_constexpr` counts as Python's `range`: it raises `TypeError`; "
                "divide with `//`"
            )
            yield Diagnostic(message, body.at(bound), ops=(traced.title,))


def _is_instance(values: DeviceValues, body: Body, expr: Expr) -> bool:
    """Whether a value may be an instance of a class of the tree, which may define its own division."""
    found = [expr, *(values.bindings(body, expr.text) or ())] if is_variable(expr) else [expr]
    calls = [item for item in found if isinstance(item, Expr) and item.kind == "call"]
    return any(values.names.meaning(body, item.callee).kind == "class" for item in calls if item.callee)

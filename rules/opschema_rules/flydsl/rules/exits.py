"""Exits from blocks that FlyDSL makes functions of."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_not_run
from opschema_rules.flydsl.device_values import device_values
from opschema_rules.flydsl.gpu_blocks import Step, Stop, block_spans, head, in_rewritten, returns_value, stops
from opschema_rules.flydsl.model import FlyTree, Traced

_EXITS = ("return", "break", "continue")


@rule("FLY221", "block-exit", pure=True)
def block_exit(file: FlyFile) -> Iterator[Diagnostic]:
    """A `return`, `break` or `continue` in a block that FlyDSL makes a function of.

    FlyDSL makes a function of each block of an `if`, of a `while` and of a `for` over `range`, since the GPU decides whether
    it runs. It does so with every `if` of a traced function, also with one whose condition is a Python value, unless that is
    in `const_expr(...)`. So a `return` there leaves only the block: what follows it runs anyway, and its value is lost,
    silently. A `break` or `continue` raises `SyntaxError` when the function is traced.

    Put the rest of the function in the `else`, or wrap a condition that is known while tracing in `const_expr`. Loops over
    `range_constexpr` and over Python's lists remain Python's, and so do functions that are not traced themselves, such as
    plain helpers. Where the condition may be known while tracing, so that callers may see to it that the block does not run, it
    is a warning. Not reported is a `return` without a value that nothing follows. The releases before 0.1.8 do this only with
    some blocks, so nothing is reported for them.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        if i >= n:
            return
        A[i] = 0
    ```

    Bad, although Python knows `bias`:

    ```python
    @flyc.jit
    def add(value, bias=None):
        if bias is None:
            return value
        return value + bias


    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        A[0] = add(n)
    ```

    Bad:

    ```python
    @flyc.kernel
    def find(A: fx.Tensor, n: fx.Int32):
        for i in range(n):
            if A[i] == 0:
                break
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, bias: fx.Constexpr[int]):
        i = fx.thread_idx.x
        if fx.const_expr(bias == 0):
            return
        for step in fx.range_constexpr(4):
            if fx.const_expr(step > bias):
                break
        if i < n:
            A[i] = bias
            return
    ```

    Good, a plain helper runs in Python:

    ```python
    def add(value, bias=None):
        if bias is None:
            return value
        return value + bias


    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        A[0] = add(n)
    ```
    """
    yield from in_rewritten(file.tree, _exits)


def _exits(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    for stop in stops(tree, traced, body) if _may_leave(body) else ():
        yield from _judged(tree, traced, body, stop)


def _may_leave(body: Body) -> bool:
    """Whether the text of a block of a function contains such a word."""
    text = body.file.source.text
    return any(text.find(word, span.start, span.end) >= 0 for span in block_spans(body.scope) for word in _EXITS)


def _judged(tree: FlyTree, traced: Traced, body: Body, stop: Stop) -> Iterator[Diagnostic]:
    item, blocks = stop.statement, stop.blocks
    if item.kind == "return" and blocks and (returns_value(item) or stop.followed):
        if may_not_run(tree, body, item.start):
            return
        why = "its value is lost" if returns_value(item) else "what follows runs anyway"
        assert body.function is not None
        message = (
            f"`return` leaves only the block of `{head(body, blocks[-1].statement)}`, not `{body.function.name}`, so {why}: "
            "FlyDSL makes a function of the block; use `else`, or `const_expr` if the condition is known while tracing"
        )
        on_gpu = any(device_values(tree, traced).of(body, step.statement.exprs[-1]) for step in blocks)
        severity = Severity.ERROR if on_gpu or blocks[-1].loop else Severity.WARNING
        yield Diagnostic(message, body.at(item.span), _of(body, blocks[-1]), ops=(traced.title,), severity=severity)
    elif item.kind in ("break", "continue") and (crossed := _crossed(stop)) is not None:
        message = (
            f"`{item.kind}` is in the block of `{head(body, crossed.statement)}`, which FlyDSL makes a function of: tracing "
            "raises `SyntaxError`; use `range_constexpr` and `const_expr` if both are known while tracing, else an `if` around "
            "the rest of the loop"
        )
        yield Diagnostic(message, body.at(item.span), _of(body, crossed), ops=(traced.title,))


def _crossed(stop: Stop) -> Step | None:
    """Return the GPU block between a `break` and its loop, or the loop itself."""
    for step in reversed(stop.steps):
        if step.gpu:
            return step
        if step.loop:
            return None
    return None


def _of(body: Body, step: Step) -> tuple[Related]:
    return (Related(body.at(step.statement.exprs[-1]), "decides whether the block runs"),)

"""Calls of kernels and launchers against their signatures, and kernels that are called in vain."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, is_variable
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.call_misfits import Misfit
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_cli.suggestions import near_names
from opschema_rules.flydsl.arguments import binds_as_written, misfits_of, signature
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.model import Call, Traced
from opschema_rules.flydsl.usage import is_unsure


@rule("FLY211", "kernel-arguments", pure=True)
def kernel_arguments(file: FlyFile) -> Iterator[Diagnostic]:
    """A call of a kernel or launcher that does not match its signature.

    FlyDSL binds the arguments when it traces the launch, as Python does for any call: a missing or additional argument, an
    unknown keyword, or two values for one parameter raise `TypeError`, at the first call on a machine with a GPU. The rule
    checks calls by the function's name, calls of functions that a factory returns (`run = build(...)`; `run(a, b)`), and
    `flyc.compile(launch, a, b)`. If a factory returns one of several functions, a call is reported if it fits none of them.

    Arguments in `*args` are counted only if the code shows how many there are: a tuple, or a function that returns one. Those in
    `**kwargs` are not checked. Calls of kernels also accept `unit_attrs` and `value_attrs`.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
        if fx.thread_idx.x < n:
            C[fx.thread_idx.x] = A[fx.thread_idx.x]


    @flyc.jit
    def launch(A: fx.Tensor, C: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        scale(A, C).launch(grid=(1,), block=(64,), stream=stream)
    ```

    Bad, what a factory returns:

    ```python
    def build(tile):
        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
            print(A, n, tile)

        return launch


    def run(x):
        launch = build(64)
        launch(x, x.shape[0], strm=torch.cuda.current_stream())
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, C: fx.Tensor, n: fx.Int32, tile: fx.Constexpr[int] = 4):
        if fx.thread_idx.x < n * tile:
            C[fx.thread_idx.x] = A[fx.thread_idx.x]


    @flyc.jit
    def launch(A: fx.Tensor, C: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
        scale(A, C, n=n, value_attrs={"rocdl.waves_per_eu": 2}).launch(grid=(1,), block=(64,), stream=stream)


    def run(*tensors):
        launch(*tensors, stream=torch.cuda.current_stream())
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        for call in (*traced.calls, *traced.possible_calls):
            found = misfits_of(tree, call) if binds_as_written(tree, call) else []
            if not found or is_unsure(tree, call.body, call.expr):
                continue
            missing = [item.name for item in found if item.fault == "missing"]
            unknown = [item for item in found if item.fault == "unknown"]
            # One name too many and one too few are one argument under another name.
            renamed = len(missing) == len(unknown) == 1
            surplus = [item for item in found if item.fault == "surplus"]
            if missing and not renamed:
                yield _misfit(call, f"nothing is passed for {quoted(missing)}", _head(call))
            if surplus and surplus[0].argument is not None:
                count = sum(item.param.kind in ("posonly", "normal") for item in traced.call_parameters)
                yield _misfit(call, f"at most {count} positional arguments are accepted", surplus[0].argument.span)
            for item in found:
                if item.argument is not None and item.fault not in ("missing", "surplus"):
                    yield _misfit(call, _fault(traced, item, missing), item.argument.span)


def _misfit(call: Call, what: str, span: Span) -> Diagnostic:
    target = call.target
    return Diagnostic(
        f"this call of `{target.name}` does not match its signature: {what}",
        call.body.at(span),
        (signature(target),),
        ops=(target.title,),
    )


def _head(call: Call) -> Span:
    """Return the span of the called name."""
    return call.expr.items[0].span


def _fault(traced: Traced, item: Misfit, missing: list[str]) -> str:
    if item.fault == "twice":
        return f"`{item.name}` is passed twice"
    if item.fault == "position-only":
        return f"`{item.name}` is positional-only"
    if len(missing) == 1:
        return f"it has no parameter `{item.name}`, but `{missing[0]}`, for which nothing else is passed"
    close = near_names(item.name, missing or [one.name for one in traced.call_parameters], 1)
    return f"it has no parameter `{item.name}`" + (f", but `{close[0]}`" if close else "")


@rule("FLY213", "unlaunched-kernel", pure=True)
def unlaunched_kernel(file: FlyFile) -> Iterator[Diagnostic]:
    """A kernel that is called but not launched.

    The call of a kernel only binds its arguments; `.launch(grid=..., block=...)` on the result adds the kernel to the
    program and starts it. Without it, the program is compiled and runs, but the kernel does not: the output keeps its old
    contents. Nothing is reported if the result of the call is passed on, returned or stored in anything but a name.

    A kernel that is called at a module's top level, or passed to `flyc.compile`, which takes launchers, raises.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        fill(A)
    ```

    Bad, through a name:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        pending = fill(A)
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor):
        A[0] = 1


    def pending(A):
        return fill(A)


    @flyc.jit
    def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
        first = fill(A)
        first.launch(grid=(1,), block=(64,), stream=stream)
        (fill(A).launch(grid=(1,), block=(64,), stream=stream))
        pending(A).launch(grid=(1,), block=(64,), stream=stream)
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        for call in traced.calls if traced.kind == "kernel" else ():
            if call.launches or is_unsure(tree, call.body, call.expr):
                continue
            if call.compiles:
                yield _unlaunched(
                    call, "`flyc.compile` takes a function under `flyc.jit`, and this is a kernel: it raises"
                )
            elif call.body.function is None and call.body.cls is None and tree.around(call.body) is None:
                yield _unlaunched(
                    call, f"`{traced.name}` is a kernel, which only a function under `flyc.jit` may call: it raises"
                )
            elif _is_dropped(call):
                yield _unlaunched(
                    call, f"`{traced.name}` is called and never launched, so it does not run: add `.launch(...)`"
                )


def _unlaunched(call: Call, message: str) -> Diagnostic:
    return Diagnostic(message, call.place, (signature(call.target),), ops=(call.target.title,))


def _is_dropped(call: Call) -> bool:
    """Whether a statement ignores the result of a call, assigns it to a name that is never read, or reads its ``.launch``
    without a call.
    """
    targets = _targets(call.body).get(call.expr.span)
    if targets is None or not all(map(is_variable, targets)):
        return False
    return not any(item.text in _read(call.body) or item.text in call.body.file.rebound for item in targets)


@cached_on_argument
def _targets(body: Body) -> dict[Span, tuple[Expr, ...]]:
    """Return the targets of values in statements, also of ``value.launch``, by the spans of the values."""
    found: dict[Span, tuple[Expr, ...]] = {}
    for item in all_statements(body.function.statements) if body.function is not None else ():
        if item.kind in ("expr", "assign"):
            *targets, value = item.exprs
            is_launch = value.kind == "attribute" and value.text == "launch"
            found.setdefault((value.items[0] if is_launch else value).span, tuple(targets))
    return found


@cached_on_argument
def _read(body: Body) -> frozenset[str]:
    """The names that a body or a nested one reads."""
    return frozenset(use.name.partition(".")[0] for scope in body.scope.walk() for use in scope.uses)

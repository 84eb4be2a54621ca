"""Branches, loops and indices that Python decides while it traces, by values that it does not have yet."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, names_read
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_cli.source.text import Edit, Span
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import DeviceValues, device_values, is_loop
from opschema_rules.flydsl.helper_branches import HelperBranch, helper_branches
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.needs import Need, needs
from opschema_rules.flydsl.proofs import TRACED
from opschema_rules.flydsl.usage import is_meant_to_fail


@rule("FLY217", "device-branch", fixable="unsafe", proof=TRACED, pure=True)
def device_branch(file: FlyFile) -> Iterator[Diagnostic]:
    """A run-time value that Python needs while it traces.

    The body of a kernel or launcher runs once, in Python, to write the GPU program. An `if`, a `while`, a conditional
    expression and a `for` over `range` become part of that program. Everything else that needs a value needs it
    immediately, and a parameter that is not a `Constexpr` has none yet. These raise: `range_constexpr(n)` and `range(n)`
    outside a `for`, an `if const_expr(n > 0)`, `int(n)`, an `assert`, `min` and `max`, the condition of a comprehension,
    the index of a Python list, `n in (1, 2)`, `[0] * n`, `any`, `sorted`, `round`, a format such as `f"{n:02d}"`, the shape of
    `full` or of `make_rmem_tensor` (which ends the process in 0.4.2 and 0.5.0).

    The variable of `for i in range(4)` is such a value too, since the loop runs on the GPU, and it is not even a FlyDSL
    number: as an index it raises, and if Python decides by it, as in `if const_expr(i == 0)` or an `assert`, it is always
    true. `range_constexpr` unrolls the loop and has a variable that is a number.

    A plain function that a kernel calls with such a value stays plain Python: its `if` and its `for` over `range` raise too.
    Under `flyc.jit` they become part of the program.

    A variable that begins as a plain number, and that a GPU `if` changes, is such a value after the `if`.

    The rule checks only values that come from parameters annotated as numbers, from thread and block indices and from such
    loops, and of launchers only those that launch kernels: a function under `flyc.jit` that a kernel calls may be passed
    Python numbers.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        rows, count = [1, 2, 3], 0
        if n > 2:
            count += 1
        A[0] = rows[count]
    ```

    Bad:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, n: fx.Int32):
        for i in fx.range_constexpr(n // 4):
            A[i] = 0
    ```

    Bad:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, n: fx.Int32):
        if fx.const_expr(n > 0):
            A[0] = n
    ```

    Bad, the loop runs on the GPU:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor):
        offsets = [0, 4, 1, 5]
        for i in range(4):
            A[offsets[i]] = 0
    ```

    Bad, the `if` is in a plain function:

    ```python
    def clamp(n):
        if n > 64:
            return 64
        return n


    @flyc.kernel
    def copy(A: fx.Tensor, n: fx.Int32):
        A[0] = clamp(n)
    ```

    Good:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor, n: fx.Int32, unroll: fx.Constexpr[int]):
        offsets = [0, 4, 1, 5]
        for i in fx.range_constexpr(4):
            A[offsets[i]] = 0
        for i in range(n // unroll):
            if i < n - 1 and n > 3:
                A[i] = n if n > 4 else 0
        if fx.const_expr(unroll > 2):
            A[0] = [offsets[i] for i in range(unroll)][0]
    ```

    Good, a helper that a kernel calls with Python numbers:

    ```python
    @flyc.jit
    def fill(A: fx.Tensor, n: fx.Int32):
        for i in fx.range_constexpr(n):
            A[i] = 0


    @flyc.kernel
    def copy(A: fx.Tensor):
        fill(A, 4)
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        values = device_values(tree, traced)
        for need in needs(values):
            if is_meant_to_fail(tree, traced.body) or may_pass(tree, need.body, need.expr.start):
                continue
            yield Diagnostic(
                _asked(need),
                need.body.at(need.expr),
                tuple(_sources(traced, values, need)),
                _fix(tree, values, need),
                (traced.title,),
            )
        for item in helper_branches(values):
            failing = any(is_meant_to_fail(tree, body) for body in (traced.body, item.helper))
            if not failing and not may_pass(tree, item.caller, item.argument.start):
                yield _of_helper(item)


def _of_helper(item: HelperBranch) -> Diagnostic:
    function = item.helper.function
    name = function.name if function is not None else ""
    written = item.helper.file.text(item.expr)
    return Diagnostic(
        f"`{written}` is known at run time only where a kernel calls `{name}`, and `{item.what}` decides in Python there: it "
        "raises; put the function under `flyc.jit`",
        item.helper.at(item.expr),
        (Related(item.caller.at(item.argument), f"passed as `{item.parameter}`"),),
    )


_USES = {
    "count": "`{by}` needs a number while the function is traced: it raises",
    "index": "`{by}` is a Python list or tuple, which cannot be indexed by it: it raises",
    "shape": "`{by}` needs the shape while the function is traced: it fails",
    "identity": "`{by}` compares identity, and two values are never the same object: write `==` or `!=`",
    "decide": "`{by}` decides while the function is traced: it raises",
    "decide: const_expr": "`const_expr` decides while the function is traced: it raises",
}


def _asked(need: Need) -> str:
    written = need.body.file.text(need.expr)
    what = _USES[need.use].format(by=need.by)
    if need.use.startswith("decide") and need.value == "raw":
        what = what.replace("it raises", "it is always true")
    why = "belongs to a GPU loop" if need.value == "raw" else "is known at run time only"
    return f"`{written}` {why}, and {what}"


def _sources(traced: Traced, values: DeviceValues, need: Need) -> Iterator[Related]:
    """Yield the sources of a device value: the parameter or the loop."""
    for name in names_read([need.expr]):
        parameter = values.parameter(need.body, name)
        if parameter is not None:
            yield Related(traced.body.at(parameter.param.full_span), "no `Constexpr`")
    loop = _loop(values, need)
    if loop is not None:
        yield Related(need.body.at(loop), "a GPU loop")


def _loop(values: DeviceValues, need: Need) -> Span | None:
    """Return the ``range`` of the loop whose variable is the raw value, if the variable is bound once and in the same function."""
    for name in names_read([need.expr]) if need.value == "raw" else ():
        match values.bindings(need.body, name):
            case [Statement() as loop] if is_loop(loop) and loop.exprs[1].span in _iterated(need.body):
                return loop.exprs[1].items[0].span
    return None


@cached_on_argument
def _iterated(body: Body) -> dict[Span, Expr]:
    """The expressions that the loops of a function iterate over, by span; calls also by the span of the callee."""
    found = [item.exprs[1] for item in all_statements(body.statements) if item.kind == "for"]
    return {item.span: item for item in found} | {item.items[0].span: item for item in found if item.kind == "call"}


def _fix(tree: FlyTree, values: DeviceValues, need: Need) -> Fix | None:
    """Return a fix that replaces one word: the loop function or the condition."""
    path = need.body.file.path
    outer = need.outer
    if need.use == "decide: const_expr" and need.value == "number" and outer.kind == "call":
        text = need.body.file.text(outer.items[1])
        if need.body.file.text(outer).count("#") > text.count("#"):
            return None  # a comment would go
        edit = Edit(outer.span, text if "\n" not in text else f"({text})")
        why = "both branches are then compiled, and what they assign needs a value before"
        return Fix("decide at run time: drop `const_expr`", (FileEdit(path, edit),), "unsafe", why)
    if need.by == "range_constexpr" and _is_of_loop(need):
        edit = Edit(outer.items[0].span, "range")
        why = "the loop is not unrolled then, and its variable is not a Python number"
        return Fix("loop at run time: `range`", (FileEdit(path, edit),), "unsafe", why)
    loop = _loop(values, need)
    name = _unrolled(tree, need.body)
    if loop is not None and name and not _has_device_bounds(values, need, loop):
        why = "it unrolls the loop"
        return Fix(f"loop while tracing: `{name}`", (FileEdit(path, Edit(loop, name)),), "unsafe", why)
    return None


def _is_of_loop(need: Need) -> bool:
    """Whether the call that needs a value is what a loop iterates over."""
    return need.outer.span in _iterated(need.body)


def _has_device_bounds(values: DeviceValues, need: Need, at: Span) -> bool:
    """Whether the loop at that place has a bound that is not known while tracing."""
    call = _iterated(need.body)[at]
    return any(values.of(need.body, item) or not _is_static(item) for item in call.positional())


def _is_static(expr: Expr) -> bool:
    return expr.kind in ("const", "literal", "name", "binary")


def _unrolled(tree: FlyTree, body: Body) -> str:
    """Return the body's name for ``range_constexpr``; empty if it is not imported."""
    for name in ("range_constexpr", "fx.range_constexpr", "expr.range_constexpr"):
        if tree.names.full(body, name).startswith("flydsl."):
            return name
    return ""

"""Variables that a GPU loop cannot carry from one iteration to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.statements import all_statements, is_variable, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Scope, Statement
from opschema_rules.flydsl.changed_types import changes, cut_by
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import device_values, stays_python
from opschema_rules.flydsl.element_types import ElementTypes, type_of
from opschema_rules.flydsl.gpu_blocks import Step, Stop, head, in_rewritten, is_gpu_loop, stops
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.number_types import FLOAT, INT
from opschema_rules.flydsl.value_types import is_float, machine_type, written

_ARITHMETIC = ("+=", "-=", "*=")
_GROWING = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_SHRINKS = re.compile(r"\b([A-Za-z_]\w*)\.(?:pop|popitem|remove|clear|discard)\(|\bdel\s+([A-Za-z_]\w*)")
_NUMBERS = frozenset({"const", "unary"})
_STARTS = frozenset({*_NUMBERS, "list", "listcomp", "dict", "dictcomp", "set", "setcomp"})
"""Kinds of initial values of a variable that a loop cannot carry."""
_CONTAINERS = {"list": "list", "listcomp": "list", "dict": "dict", "dictcomp": "dict", "set": "set", "setcomp": "set"}


@rule("FLY223", "carried-value", pure=True)
def carried_value(file: FlyFile) -> Iterator[Diagnostic]:
    """A variable that a GPU loop assigns, and whose value the loop cannot carry.

    The body of a `for` over `range` is traced once, as a function that gets the variables it assigns and returns them. So their
    values before the loop and after its body must be GPU values, of one type: `None` before the loop, a list that
    the body appends to, a tuple that gets longer, a dict that gets a new key, a string, and a number of another type raise
    `TypeError` when the function is traced.

    Begin with a value of the right type (`fx.Float32(0.0)`), or use `range_constexpr`, which leaves the loop to Python, if the
    bounds are known while tracing. Only variables are checked that the function assigns once before the loop. The type of the
    elements of a tensor argument depends on the caller's tensor. It is known if all callers in the tree pass tensors of the
    same dtype and write it (`dtype=torch.float16`, `.half()`). It is not used inside an `if`, which may be for other dtypes.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        last = None
        for i in range(4):
            last = n + i
        A[0] = last
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        parts = []
        for i in range(4):
            parts.append(n + i)
        A[0] = parts[0]
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        total = 0
        for i in range(n):
            total += 0.5
        A[0] = total
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        parts = fx.make_rmem_tensor(4, fx.Float16)
        total = 0.0
        for i in range(n):
            total = parts[i]
        A[0] = total
    ```

    Bad:

    ```python
    @flyc.kernel
    def last(A: fx.Tensor, n: fx.Int32):
        total = 0.0
        for i in range(n):
            total = A[i]
        A[0] = total


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        last(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))


    launch(torch.zeros(64, dtype=torch.float16), 64)
    ```

    Good, as the sum with a 16-bit element has 32 bits:

    ```python
    @flyc.kernel
    def last(A: fx.Tensor, n: fx.Int32):
        total = 0.0
        for i in range(n):
            total += A[i]
        A[0] = total


    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        last(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))


    launch(torch.zeros(64, dtype=torch.float16), 64)
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        last, total = None, fx.Float32(0.0)
        parts = []
        for i in fx.range_constexpr(4):
            last = n + i
            parts.append(last)
        for i in range(n):
            inner = []
            inner.append(n + i)
            total = total + 1
        A[0] = total
    ```
    """
    yield from in_rewritten(file.tree, _carried)


def _may_carry(scope: Scope) -> bool:
    """Whether a GPU loop changes a variable that begins as a Python value, by facts alone."""
    loops = [item.body for item in scope.loops if is_gpu_loop(item.iterable)]
    starts = (
        {item.target for item in scope.assigns if item.value is not None and _is_start(item.value)} if loops else set()
    )
    if not starts:
        return False
    changed = [item.start for item in scope.assigns if item.target in starts and not item.sure]
    grown = [call.start for call in scope.calls if _grown(call) in starts]
    return any(span.start <= at < span.end for span in loops for at in (*changed, *grown))


def _is_start(value: Expr) -> bool:
    return value.kind in _STARTS or value.callee in ("list", "dict", "set")


def _grown(call: Expr) -> str:
    name, _, method = call.callee.rpartition(".")
    return name if method in _GROWING else ""


def _text(body: Body) -> str:
    return body.file.text(body.function.outer) if body.function is not None else ""


def _is_reached(statements: Sequence[Statement], wanted: Statement) -> bool:
    """Whether only loops surround a statement, and nothing before it leaves the function."""
    for item in statements:
        if item.start <= wanted.start < item.end:
            inside = item.kind == "for" and _is_reached(item.blocks[0], wanted)
            return item.span == wanted.span or inside
        if any(inner.kind in ("return", "raise") for inner in all_statements([item])):
            return False
    return False


def _carried(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on variables that a GPU loop changes to a value that it cannot carry."""
    yield from _plain_starts(tree, traced, body) if _may_carry(body.scope) else ()
    values = device_values(tree, traced)

    def is_block(item: Statement) -> bool:
        return item.kind == "for" and is_gpu_loop(item.exprs[1]) and not stays_python(traced.body, body, item.start)

    for change in (
        changes(values, body, is_block) if any(is_gpu_loop(item.iterable) for item in body.scope.loops) else ()
    ):
        text = change.first.kind == "const" and isinstance(change.first.value, str)
        if (text or not _is_start(change.first)) and not may_pass(tree, body, change.statement.start):
            yield _diagnostic(traced, body, change.name, change.why, change.block, change.first, change.statement)


def _diagnostic(
    traced: Traced, body: Body, name: str, why: str, loop: Statement, first: Expr, change: Statement
) -> Diagnostic:
    message = (
        f"`{name}` {why}, and the GPU loop `{head(body, loop)}` carries it from one iteration to the next: tracing raises "
        "`TypeError`; begin with a value of its type, or use `range_constexpr`"
    )
    related = (Related(body.at(first), "the value before the loop"),)
    return Diagnostic(message, body.at(change.span), related, ops=(traced.title,))


def _plain_starts(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on variables that are assigned a Python value once, outside all blocks of the loop, and changed in the
    loop.
    """
    types = ElementTypes(device_values(tree, traced))
    before: dict[str, list[tuple[Expr | None, Stop]]] = {}
    reported = {match[1] or match[2] for match in _SHRINKS.finditer(_text(body))}
    found = list(stops(tree, traced, body))
    replaced: dict[str, list[int]] = {}
    for stop in found:
        for name in _replaced(stop.statement):
            replaced.setdefault(name, []).append(stop.statement.start)
    for stop in found:
        for name, change, value in _changes(stop.statement):
            loop = _loop_within(stop, before.get(name))
            first = before[name][0][0] if loop is not None else None
            if loop is None or first is None or name in reported or not _is_start(first):
                continue
            again = (at for at in replaced.get(name, ()) if loop.statement.start <= at < loop.statement.end)
            if first.kind not in _NUMBERS and any(again):
                continue  # of the same length again, perhaps
            types.surely_run = body is traced.body and _is_reached(body.statements, stop.statement)
            why = _why(types, body, first, *_augmented(name, change, value))
            if why and not _may_pass(tree, body, first, stop.statement):
                reported.add(name)
                yield _diagnostic(traced, body, name, why, loop.statement, first, stop.statement)
        for name, value in _assigned(stop.statement):
            before.setdefault(name, []).append((value, stop))


def _may_pass(tree: FlyTree, body: Body, first: Expr, change: Statement) -> bool:
    """Whether a change may not run, or its error may be handled. FlyDSL checks for variables that are None before it traces
    anything.
    """
    nothing = first.kind == "const" and first.value is None
    return may_pass(tree, body, change.start) and not nothing


def _loop_within(stop: Stop, before: list[tuple[Expr | None, Stop]] | None) -> Step | None:
    """Return the GPU loop that contains a statement, but not the only assignment before it."""
    if before is None or len(before) != 1:
        return None
    around, steps = before[0][1].steps, stop.steps  # what a block of any `if` assigns, no loop behind it carries
    if len(around) > len(steps) or not all(one.same(other) for one, other in zip(around, steps, strict=False)):
        return None
    return next((item for item in steps[len(around) :] if item.loop and item.gpu), None)


def _assigned(item: Statement) -> Iterator[tuple[str, Expr | None]]:
    """Yield the variables that a statement assigns, with their values where these are known."""
    if item.kind == "assign":
        for target in item.exprs[:-1]:
            yield from _pairs(target, item.exprs[-1])
    elif item.kind == "annassign":
        yield item.exprs[0].text, item.exprs[2] if len(item.exprs) == 3 else None
    elif item.kind in ("augassign", "for"):
        yield from ((part.text, None) for part in item.exprs[0].walk() if is_variable(part))
    for expr in own_expressions(item):
        if expr.kind == "walrus":
            yield expr.items[0].text, None  # FlyDSL does not see that it assigns


def _replaced(item: Statement) -> Iterator[str]:
    """Yield the variables that a statement gives another value, and the lists that it cuts."""
    if item.kind != "augassign":
        yield from (name for name, value in _assigned(item) if _augmented(name, "assign", value)[0] == "assign")
    yield from cut_by(item)


def _pairs(target: Expr, value: Expr) -> Iterator[tuple[str, Expr | None]]:
    if is_variable(target):
        yield target.text, value
        return
    left, right = target.elements or (), value.elements if value.kind == "tuple" else None
    same = right is not None and len(left) == len(right)
    for at, part in enumerate(left):
        yield from _pairs(part, right[at]) if right is not None and same else ((part.text, None),)


def _changes(item: Statement) -> Iterator[tuple[str, str, Expr | None]]:
    """Yield the variables that a statement changes: ``assign`` and ``+=`` with the value, or the method that makes a container
    grow.
    """
    if item.kind == "augassign" and is_variable(item.exprs[0]):
        yield item.exprs[0].text, f"{item.text}=", item.exprs[1]
    elif item.kind in ("assign", "annassign"):
        yield from ((name, "assign", value) for name, value in _assigned(item))
    elif item.kind == "expr" and item.exprs[0].kind == "call":
        name, _, method = item.exprs[0].callee.partition(".")
        if method in _GROWING:
            yield name, method, item.exprs[0]


def _augmented(name: str, change: str, value: Expr | None) -> tuple[str, Expr | None]:
    """Return the change ``x = x + 1`` as ``x += 1``, and any other unchanged."""
    if change == "assign" and value is not None and value.kind == "binary" and value.text in ("+", "-", "*"):
        first, second = value.items
        if first.kind == "name" and first.text == name:
            return f"{value.text}=", second
    return change, value


def _why(types: ElementTypes, body: Body, first: Expr, change: str, value: Expr | None) -> str:
    """Return why a loop does not carry a value; empty if it does, or if that is not known."""
    if first.kind == "const" and body.file.text(first) == "None":
        return "is `None` before" if change in ("assign", *_ARITHMETIC) else ""
    kind = _CONTAINERS.get(first.kind) or ({"list", "dict", "set"} & {first.callee} or {""}).pop()
    if change in _GROWING:
        return _grows(kind, first, change)
    if change == "+=" and kind == "list":
        return "is a list that `+=` makes longer" if value is not None and value.kind == "list" and value.items else ""
    start, other = types.of(body, first), type_of(types, body, value) if value is not None else ""
    if change in _ARITHMETIC and start in (INT, "Int32"):
        if is_float(other):
            return f"begins as {written(start)} and becomes a float"
        return f"begins as {written(start)} and becomes {written(other)}" if machine_type(other) == "i64" else ""
    if change == "assign" and start in (INT, "Int32", FLOAT) and machine_type(other):
        differs = machine_type(start) != machine_type(other)
        return f"begins as {written(start)} and becomes {written(other)}" if differs else ""
    return ""


def _grows(kind: str, first: Expr, change: str) -> str:
    """Return how a change makes a container grow; empty if a loop can carry it. A dict only counts if it is empty before."""
    if kind == "list" and change in ("append", "extend", "insert"):
        return f"is a list that `{change}()` makes longer"
    if kind == "set" and change in ("add", "update"):
        return "is a set"
    empty = first.kind == "dict" and not first.items
    return f"is a dict that gets keys by `{change}()`" if kind == "dict" and empty and change != "add" else ""

"""Variables that exist in a GPU block only."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.statements import bound_by, is_variable, own_expressions, targets
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Scope, Statement
from opschema_cli.source.text import NestedSpans, Span, SpanSet
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_not_run
from opschema_rules.flydsl.device_values import stays_python
from opschema_rules.flydsl.gpu_blocks import Step, Stop, block_spans, excludes, head, in_rewritten, is_gpu_loop, stops
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.needs import is_const_expr

_WORD = re.compile(r"[A-Za-z_]\w*")


@rule("FLY222", "block-variable", pure=True)
def block_variable(file: FlyFile) -> Iterator[Diagnostic]:
    """A variable that is first assigned in a GPU block and read outside it.

    FlyDSL makes a function of each block of an `if`, of a `while` and of a `for` over `range`. A variable that exists before
    the block is passed in and out, but one that is first assigned in the block is a local variable of that function: a read
    behind the block raises `NameError` while the function is traced, even if both branches of the `if` assign it. The same
    holds for the variable of the loop itself.

    Assign a value of the same type before the block, or use `range_constexpr` and `const_expr`, which leave the block to
    Python, if the bounds and the condition are known while tracing. Not reported are names that a function or module around
    has, too, and the releases before 0.1.8, which do this only with some blocks.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        if n > 4:
            value = n
        else:
            value = n + 1
        A[0] = value
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        for i in range(4):
            last = n + i
        A[0] = last
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, wide: fx.Constexpr[bool]):
        value = n
        if n > 4:
            value = n + 1
        for i in fx.range_constexpr(4):
            last = n + i
        if fx.const_expr(wide):
            step = 4
        else:
            step = 2
        for i in range(4):
            inner = n + i
            A[i] = inner
        for inner in fx.range_constexpr(2):
            A[inner] = value + last + step
    ```
    """
    yield from in_rewritten(file.tree, _read_outside)


def _may_read_outside(body: Body) -> bool:
    """Whether the text after a block names a variable that is only assigned in such blocks, by facts alone."""
    scope, function = body.scope, body.function
    spans = list(block_spans(scope)) if function is not None else []
    if not spans or function is None or "except" in body.file.text(function.outer):
        return False
    around: dict[str, list[Span | None]] = {}
    sure = {item.target for item in scope.assigns if item.sure}
    branches = [(item.body, item.orelse) for item in scope.conditions if item.orelse and is_const_expr(item.expr)]
    blocks = NestedSpans(spans)
    others = SpanSet(span for pair in branches for span in pair)
    for name, at in _bindings(scope):
        block = blocks.innermost(at) if name not in sure else None
        if name not in sure and (block is not None or at not in others):
            around.setdefault(name, []).append(block)
    inner = {name: [span for span in found if span] for name, found in around.items() if all(found)}
    first = min((span.end for found in inner.values() for span in found), default=function.outer.end)
    words = _WORD.finditer(body.file.source.text, first, function.outer.end) if inner else ()
    return any(_is_outside(match.start(), inner[match[0]]) for match in words if match[0] in inner)


def _is_outside(at: int, spans: list[Span]) -> bool:
    return at >= min(span.end for span in spans) and not any(span.start <= at < span.end for span in spans)


def _bindings(scope: Scope) -> Iterator[tuple[str, int]]:
    yield from ((item.target, item.start) for item in scope.assigns)
    yield from ((item.name, item.outer.start) for item in scope.functions)
    yield from ((item.name, item.start) for item in scope.imports)


class _Named(msgspec.Struct, frozen=True, eq=False):
    """A name that is bound or read at a place, and the blocks around it."""

    span: Span
    steps: tuple[Step, ...]

    @property
    def blocks(self) -> list[Step]:
        """The GPU blocks around it."""
        return [item for item in self.steps if item.gpu]

    def sees(self, binding: _Named) -> bool:
        """Whether a read may see a binding in a block that is also around the read."""
        blocks, around = binding.blocks, self.blocks
        return len(blocks) <= len(around) and all(one.same(other) for one, other in zip(blocks, around, strict=False))


def _read_outside(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    if not _may_read_outside(body):
        return
    bound: dict[str, dict[int, list[_Named]]] = {}  # by their ways, which those of one block share
    read: list[tuple[str, _Named]] = []
    hidden: set[str] = set()
    for stop in stops(tree, traced, body):
        for name, span in _bound(stop):
            inner = _entered(traced, body, stop)
            steps = (*stop.steps, inner) if inner else stop.steps
            bound.setdefault(name, {}).setdefault(id(steps), []).append(_Named(span, steps))
        read += [(item.text.partition(".")[0], _Named(item.span, stop.steps)) for item in _read(stop.statement)]
        read += [(name, _Named(span, stop.steps)) for name, span in _read_within(tree, body, stop.statement)]
        hidden |= _hidden(stop.statement)
    reported: set[str] = set()
    for name, use in read:
        if name in reported or name in hidden:
            continue
        groups = bound.get(name, {}).values()
        reaching = [items for items in groups if not excludes(items[0].steps, use.steps)]
        if any(use.sees(items[0]) for items in reaching):
            continue
        if all(items[0].span.start >= use.span.start for items in reaching):
            continue
        reached = [item for items in reaching for item in items if item.span.start < use.span.start]
        before = [item for items in groups for item in items if item.span.start < use.span.start]
        if not _is_known_around(tree, body, name) and not may_not_run(tree, body, use.span.start):
            reported.add(name)
            error = " `NameError`" if len(reached) == len(before) else ""
            yield _unseen(traced, body, name, use, reached, error)


def _unseen(traced: Traced, body: Body, name: str, use: _Named, before: list[_Named], error: str) -> Diagnostic:
    first = max(before, key=lambda item: item.span.start)
    around = use.blocks
    block = next(item for at, item in enumerate(first.blocks) if at >= len(around) or not item.same(around[at]))
    message = (
        f"`{name}` is first assigned in the block of `{head(body, block.statement)}`, which FlyDSL makes a function of, and "
        f"read outside it: tracing raises{error}; assign `{name}` before the block, or use "
        f"`{'range_constexpr' if block.loop else 'const_expr'}` if it is known while tracing"
    )
    return Diagnostic(message, body.at(use.span), (Related(body.at(first.span), "assigned"),), ops=(traced.title,))


def _entered(traced: Traced, body: Body, stop: Stop) -> Step | None:
    """Return the block of the GPU loop whose variable a statement binds."""
    item = stop.statement
    step = Step(item, 0, gpu=True, loop=True)
    gpu = item.kind == "for" and is_gpu_loop(item.exprs[1]) and not stays_python(traced.body, body, item.start)
    return step if gpu else None


def _bound(stop: Stop) -> Iterator[tuple[str, Span]]:
    """Yield the names that a statement binds, each with its place."""
    item = stop.statement
    for target in targets(item):
        yield from (
            (part.text, part.span) for part in target.walk() if is_variable(part) and part.text in bound_by(target)
        )
    if item.kind in ("def", "class", "import", "case", "except"):
        yield from ((name, item.span) for name in item.names)
    for expr in own_expressions(item):
        if expr.kind == "walrus":
            yield expr.items[0].text, expr.items[0].span


def _read(item: Statement) -> Iterator[Expr]:
    """Yield the names that a statement itself reads. Python does not evaluate the annotations of variables of functions."""
    annotation = item.exprs[1].span if item.kind == "annassign" else None
    written = {part.span for target in targets(item) for part in target.walk() if is_variable(part)}
    stored = written if item.kind != "delete" else set()
    for expr in own_expressions(item):
        if annotation is not None and annotation.start <= expr.start < annotation.end:
            continue
        if expr.kind == "name" and (expr.span not in stored or _is_inside(item, expr)):
            yield expr


def _read_within(tree: FlyTree, body: Body, item: Statement) -> Iterator[tuple[str, Span]]:
    """Yield the enclosing function's variables that a nested function reads."""
    if item.kind == "def":
        for function in tree.bodies.within(body):
            if function.function is not None and item.start <= function.function.span.start < item.end:
                for inner in tree.bodies.inside(function):
                    names = ((use.name.partition(".")[0], use.span) for use in inner.scope.uses)
                    yield from ((name, span) for name, span in names if inner.binder(name) is body)


def _is_inside(item: Statement, expr: Expr) -> bool:
    """Whether a name in a target is read, as the owner or index of an item."""
    return not any(expr.text in bound_by(target) for target in targets(item))


def _hidden(item: Statement) -> set[str]:
    """Return the names that comprehensions and lambdas bind, or that belong to other functions."""
    found = set(item.names) if item.kind in ("global", "nonlocal", "delete") else set[str]()
    for expr in own_expressions(item):
        if expr.kind == "for":
            found.update(bound_by(expr.items[0]))
        elif expr.kind == "lambda":
            found.update(part.text for part in expr.walk() if part.kind == "name")
    return found


def _is_known_around(tree: FlyTree, body: Body, name: str) -> bool:
    """Whether a name may have another meaning there: a parameter, a variable of an enclosing scope, or a built-in."""
    if any(param.name == name for item in body.outward() for param in item.params) or hasattr(builtins, name):
        return True
    scope = tree.bodies.module(body.file).scope
    around = body.parent is not None and name in body.parent.visible
    return around or name in scope.named or any(item.attr == "*" for item in scope.imports)

"""Wrapped tensors and the marks of their layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.python import Expr, Loop
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.model import FlyTree, Wrap
from opschema_rules.flydsl.reader import params
from opschema_rules.flydsl.tensors import Tensors, method_of, names_in, number, shape_of

_DIMS = ("mark_shape_dynamic", "mark_stride_dynamic")
_LAYOUT = params("leading_dim", "divisibility")
_SHAPE = params("dims", "divisibility")
_STATEMENT = re.compile(r"\s*(?:\w+ *= *|return +)?")
"""Text before an expression that always runs with its statement."""


@rule("FLY208", "static-wrap", severity="info", pure=True)
def static_wrap(file: FlyFile) -> Iterator[Diagnostic]:
    """A tensor whose size changes is wrapped so that the kernel is compiled again for each size.

    From 0.2.0 on the shape and the strides of a tensor that `from_dlpack` or `from_torch_tensor` wraps are part of the
    cache key, unless they are marked as dynamic. This is reported if a loop, in the function or around its calls, creates
    the tensor in changing sizes. That may be intended: a kernel that knows its sizes is faster.

    Bad:

    ```python
    @flyc.jit
    def launch(A: fx.Tensor): ...


    for rows in (128, 256, 512):
        a = torch.randn(rows, 64)
        launch(flyc.from_torch_tensor(a))
    ```

    Good:

    ```python
    @flyc.jit
    def launch(A: fx.Tensor): ...


    weight = torch.randn(64, 64)
    for rows in (128, 256, 512):
        a = torch.randn(rows, 64)
        launch(flyc.from_torch_tensor(a).mark_shape_dynamic(0))
        launch(flyc.from_torch_tensor(weight))
    ```

    Good, as the sizes do not change:

    ```python
    @flyc.jit
    def launch(A: fx.Tensor): ...


    for turn in range(10):
        launch(flyc.from_torch_tensor(torch.randn(128, 64)))
    ```
    """
    tree = file.tree
    if not tree.contract.surely(Era.SPLIT, Era.CURRENT):
        return
    tensors = Tensors(tree)
    for wrap in tree.wraps:
        if not tensors.mark_calls(wrap) and wrap.tensor is not None:
            yield from _static(tree, wrap, wrap.tensor)


def _static(tree: FlyTree, wrap: Wrap, tensor: Expr) -> Iterator[Diagnostic]:
    shape = shape_of(tree, wrap.body, tensor)
    if shape is None or shape[0] is not wrap.body:
        return
    body, sizes = shape
    for at, size in enumerate(sizes):
        loop = _changing(tree, body, size, wrap.expr.start)
        if loop is not None:
            place, item = loop
            mark = "mark_shape_dynamic(0)" if at == 0 else "mark_layout_dynamic()"
            written = " ".join(body.file.text(size).split())
            message = (
                f"a kernel is compiled for every `{written}`, which is part of the cache's key: mark it with `.{mark}`"
            )
            yield Diagnostic(message, body.at(wrap.expr), (Related(place.at(item.iterable), "it changes here"),))
            return


def _changing(tree: FlyTree, body: Body, size: Expr, at: int) -> tuple[Body, Loop] | None:
    """Return the loop that changes a size: one around ``at``, or around a call that passes the size."""
    names = names_in([size])
    loop = _loop_of(body, names, at)
    if loop is not None:
        return body, loop
    for param in body.params:
        if param.name in names and body.values(param.name) is None and not _is_assigned(body, param.name):
            for caller, call in tree.bodies.calls_of(body):
                value = argument_for(call, body.params, param.name)
                loop = _loop_of(caller, names_in([value]), call.start) if value is not None else None
                if loop is not None:
                    return caller, loop
    return None


def _is_assigned(body: Body, name: str) -> bool:
    return any(item.target == name for item in body.scope.assigns)


def _loop_of(body: Body, names: set[str], at: int) -> Loop | None:
    """Return the loop around ``at`` that gives one of the names its values, or the values that those are computed from."""
    for loop in body.scope.loops:
        if loop.body.start <= at < loop.body.end and _varies(loop):
            changing = set(loop.targets)
            for item in body.scope.assigns:
                inside = item.value is not None and loop.body.start <= item.start < loop.body.end
                if (
                    inside
                    and item.value is not None
                    and item.value.kind in ("binary", "name")
                    and names_in([item.value]) & changing
                ):
                    changing.add(item.target)
            if names & changing:
                return loop
    return None


def _varies(loop: Loop) -> bool:
    """Whether a loop iterates over several values, as far as its header shows."""
    given = loop.iterable
    if given.kind in ("list", "tuple", "set"):
        elements = given.elements or ()
        values = {(item.kind, item.text, item.value) for item in elements}
        return len(values) > 1 or any(item.kind in ("tuple", "list") for item in elements[1:])
    return given.kind == "call" and given.callee == "range" and not _runs_once(given.positional())


def _runs_once(ends: Sequence[Expr]) -> bool:
    """Whether ``range`` with these arguments has at most one value."""
    values = [item.value for item in ends if isinstance(item.value, int)]
    try:
        return len(values) == len(ends) and len(range(*values)[:2]) < 2
    except (TypeError, ValueError):
        return True


@rule("FLY210", "divisibility", pure=True)
def divisibility(file: FlyFile) -> Iterator[Diagnostic]:
    """A mark that FlyDSL rejects: a divisibility that is not a power of two, or a leading dimension whose stride is not 1.

    `mark_shape_dynamic()` and `mark_stride_dynamic()` take powers of two, one for each dimension or one for all.
    `mark_layout_dynamic()` takes the dimension whose stride is 1; this is checked for tensors that are created in the same
    function with literal sizes. All of them raise where the tensor is wrapped. So does, in FlyDSL 0.4.2, a second
    `mark_layout_dynamic()` with another leading dimension: the first one made the stride of that dimension dynamic.

    Bad:

    ```python
    def wrap(x):
        return flyc.from_torch_tensor(x).mark_shape_dynamic(0, divisibility=12)
    ```

    Bad:

    ```python
    def wrap(x):
        return flyc.from_torch_tensor(x).mark_shape_dynamic([0, 1], [16])
    ```

    Bad:

    ```python
    a = torch.randn(64, 128)
    t = flyc.from_torch_tensor(a).mark_layout_dynamic(leading_dim=0, divisibility=16)
    ```

    Bad:

    ```python
    def wrap(x):
        t = flyc.from_torch_tensor(x).mark_layout_dynamic(leading_dim=1)
        t.mark_layout_dynamic(leading_dim=0)
        return t
    ```

    Good:

    ```python
    def wrap(x, by_rows):
        t = flyc.from_torch_tensor(x)
        if by_rows:
            t.mark_layout_dynamic(leading_dim=1)
        else:
            t.mark_layout_dynamic(leading_dim=0)
        return t.mark_shape_dynamic(1, divisibility=8)
    ```

    Good:

    ```python
    a = torch.randn(64, 128)
    t = flyc.from_torch_tensor(a).mark_layout_dynamic(leading_dim=1, divisibility=16)
    u = flyc.from_torch_tensor(a.t()).mark_layout_dynamic(leading_dim=0)
    v = flyc.from_torch_tensor(a).mark_shape_dynamic([0, -1], divisibility=8)


    def wrap(x, known):
        return flyc.from_torch_tensor(x).mark_stride_dynamic(0, divisibility=known)
    ```

    Good, as the stride of a dimension is 1 too if those behind it have one element:

    ```python
    a = torch.randn(64, 1)
    t = flyc.from_torch_tensor(a).mark_layout_dynamic(leading_dim=0)
    ```
    """
    tree = file.tree
    tensors = Tensors(tree)
    for wrap in tree.wraps:
        for call in tensors.mark_calls(wrap):
            if any(word in ("*", "**") for word in call.keywords) or expects_failure(
                tree.bodies, wrap.body, call.start
            ):
                continue
            if method_of(call) in _DIMS:
                yield from _powers(tree, wrap.body, call)
            elif method_of(call) == "mark_layout_dynamic":
                yield from _leading(tree, wrap, call)
        yield from _marked_again(tree, wrap, tensors.mark_calls(wrap))


def _powers(tree: FlyTree, body: Body, call: Expr) -> Iterator[Diagnostic]:
    dims, given = argument_for(call, _SHAPE, "dims"), argument_for(call, _SHAPE, "divisibility")
    if given is None:
        return
    for item in _elements(given) or [given]:
        value = number(tree, body, item)
        if value is not None and (value <= 0 or value & (value - 1)):
            message = f"`{method_of(call)}()` raises: the divisibility {value} is not a power of two"
            lower = value & -value
            yield Diagnostic(f"{message}; use {lower} instead" if value > 0 else message, body.at(item))
    count, places = _elements(given), _elements(dims) if dims is not None else None
    if dims is None or count is None:
        return
    if number(tree, body, dims) is not None:
        yield Diagnostic(
            f"`{method_of(call)}()` raises: one dimension takes one divisibility, not a list", body.at(given)
        )
    elif places is not None and len(places) != len(count):
        message = f"`{method_of(call)}()` raises: {len(places)} dimensions and {len(count)} divisibilities"
        yield Diagnostic(message, body.at(given), (Related(body.at(dims), "the dimensions"),))


def _elements(expr: Expr) -> Sequence[Expr] | None:
    """Return the elements of a list or tuple literal; None for anything else."""
    return expr.elements if expr.kind in ("list", "tuple") else None


def _leading(tree: FlyTree, wrap: Wrap, call: Expr) -> Iterator[Diagnostic]:
    given = argument_for(call, _LAYOUT, "leading_dim")
    dim = number(tree, wrap.body, given) if given is not None else None
    shape = shape_of(tree, wrap.body, wrap.tensor) if wrap.tensor is not None else None
    if given is None or dim is None or dim == -1 or shape is None:
        return
    body, sizes = shape
    related = (Related(body.at(sizes[0]), "made here"),) if sizes else ()
    if not 0 <= dim < len(sizes):
        message = f"`mark_layout_dynamic()` raises: the tensor has no dimension {dim}, it has {len(sizes)}"
        yield Diagnostic(message, wrap.body.at(given), related)
        return
    behind = [number(tree, body, item) for item in sizes[dim + 1 :]]
    if behind and all(size is not None and size > 1 for size in behind):
        stride = _product(behind)
        message = (
            f"`mark_layout_dynamic()` raises: the stride of dimension {dim} is {stride}, that of {len(sizes) - 1} is 1"
        )
        yield Diagnostic(message, wrap.body.at(given), related)


def _marked_again(tree: FlyTree, wrap: Wrap, calls: Sequence[Expr]) -> Iterator[Diagnostic]:
    """Yield a finding on a second mark with another leading dimension, among marks that always run."""
    found: list[tuple[int, Expr]] = []
    for call in sorted(calls, key=lambda item: item.end):
        given = argument_for(call, _LAYOUT, "leading_dim") if method_of(call) == "mark_layout_dynamic" else None
        dim = number(tree, wrap.body, given) if given is not None else None
        if given is not None and dim is not None and dim >= 0 and _always_runs(tree, wrap, call):
            found.append((dim, given))
    for (first, before), (dim, given) in pairwise(found):
        if dim != first:
            message = (
                f"a tensor has one leading dimension, and this one is marked with {first} before, which made the stride of "
                f"dimension {dim} dynamic: leave one of the marks out"
            )
            yield Diagnostic(message, wrap.body.at(given), (Related(wrap.body.at(before), "marked first"),))
            return


def _always_runs(tree: FlyTree, wrap: Wrap, call: Expr) -> bool:
    """Whether a mark always runs for an existing tensor: where it is wrapped, or in an unconditional statement of its own."""
    body = wrap.body
    if any(word in ("*", "**") for word in call.keywords) or expects_failure(tree.bodies, body, call.end - 1):
        return False
    if call in wrap.marks:
        return True
    before = body.file.source.text[: call.start].rpartition("\n")[2]
    return _STATEMENT.fullmatch(before) is not None and body.scope.guarding.innermost(call.start) is None


def _product(sizes: Sequence[int | None]) -> int:
    found = 1
    for size in sizes:
        found *= size or 1
    return found

"""Values that a branch of the GPU cannot give a variable."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Statement
from opschema_rules.flydsl.changed_types import changes
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.device_values import device_values
from opschema_rules.flydsl.gpu_blocks import head, in_rewritten
from opschema_rules.flydsl.model import FlyTree, Traced


@rule("FLY232", "branch-value", pure=True)
def branch_value(file: FlyFile) -> Iterator[Diagnostic]:
    """A variable that an `if` or a `while` of the GPU gives a value of another type than before.

    FlyDSL makes a function of each branch of an `if` whose condition is known on the GPU only, and of the body of such a
    `while`. It gets the variables that the branch assigns and returns them. So their values before the `if` and in the branch have
    to be values of the GPU of one type: an `fx.Int32` that becomes a float or an `fx.Int64`, `None` before, a string, and a list
    that gets longer raise `TypeError` when the function is traced. Loops over `range` do the same (FLY223).

    Begin with a value of the right type: `fx.Float32(0.0)`, `fx.Int64(n)`.

    Only variables are checked that get a value in the statements right before the `if` and are assigned in the branch itself, and
    only types that are sure.

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        peer = None
        if n > 4:
            peer = n + 1
        A[0] = n
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        scale = 1
        if fx.thread_idx.x == 0:
            scale = 0.5
        A[0] = scale
    ```

    Bad:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        parts = []
        if fx.thread_idx.x == 0:
            parts.append(n)
        A[0] = n
    ```

    Good:

    ```python
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32, wide: fx.Constexpr[bool]):
        scale, peer = fx.Float32(1.0), None
        if fx.thread_idx.x == 0:
            scale = 0.5
        if fx.const_expr(wide):
            peer = n + 1
        A[0] = scale
    ```
    """
    yield from in_rewritten(file.tree, _changed)


def _changed(tree: FlyTree, traced: Traced, body: Body) -> Iterator[Diagnostic]:
    values = device_values(tree, traced)

    def is_block(item: Statement) -> bool:
        """Whether a condition surely is known on the GPU only."""
        test = item.exprs[0] if item.kind in ("if", "while") else None
        return test is not None and test.kind == "compare" and bool(values.of(body, test))

    for change in changes(values, body, is_block):
        if not may_pass(tree, body, change.statement.start):
            message = (
                f"`{change.name}` {change.why}, and a branch of the GPU, `{head(body, change.block)}`, has to return a value of "
                "the same type: tracing raises `TypeError`; begin with a value of that type"
            )
            related = (Related(body.at(change.first), "the value before it"),)
            yield Diagnostic(message, body.at(change.statement.span), related, ops=(traced.title,))

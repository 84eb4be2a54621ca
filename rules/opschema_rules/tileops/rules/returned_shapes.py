"""Shapes that `_infer_output_shapes()` returns, and rows that the code refuses, by executing it on the calls that rows describe."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.schema.describe import describe
from opschema_cli.source.program import FunctionRef
from opschema_rules.tileops.calls.described import DescribedCall
from opschema_rules.tileops.calls.findings import SHOWN_ROWS, Difference, is_explicit, settled
from opschema_rules.tileops.calls.outcomes import INFER, Mismatch, OpOutcome, Refusal, outcome_of
from opschema_rules.tileops.calls.parts import judged_ops, parts_of
from opschema_rules.tileops.model import Implementations, OpEntry, OpImplementation
from opschema_rules.tileops.rules.contract_methods import returns_other_outputs
from opschema_rules.tileops.rules.row_values import stated

_parts = parts_of("infer-shapes", outcome_of)


@rule("SHP113", "returned-shape", parts=_parts)
def returned_shape(ops: Implementations) -> Iterator[Diagnostic]:
    """`_infer_output_shapes()` returns another shape than the manifest declares.

    The registered fake takes the shape of each output from `_infer_output_shapes()`, so compiled code (`torch.compile`)
    allocates and indexes by it; callers rely on the manifest. Nothing is run: opschema interprets the constructor and the
    method with the shapes and params of each workload row, and with sizes that are derived from a row: odd and distinct
    ones, 1 and 0, as far as the shape rules allow them. If a row leaves a size open, one is chosen that satisfies the
    rules; for an entry without rows, all sizes and the params without default are chosen. The returned shapes are compared
    with the declared shapes and the shape rules.

    A call that the code rejects, or whose result depends on something unknown, such as the device, is skipped
    (`--show-unresolved` lists the latter). If ops share one method, and some agree with it, the entries of the others are
    reported. This is checked if the tree's specification mentions `_infer_output_shapes`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            rows, columns = x_shape
            return {"y": (columns, rows)}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Bad, the shape rule says one more:

    ```yaml
    signature:
      params:
        size: {type: int, default: 3}
      shape_rules:
        - "_k == size"
        - "y.shape == (x.shape[0], (x.shape[1] + 2 - _k) // 2 + 1)"
    ```

    ```python
    def pooled(size, kernel):
        return (size - kernel) // 2 + 1


    class ExampleFwdOp(Op):
        def __init__(self, size: int = 3, *, kernel_map=None):
            self.size = size
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": (x_shape[0], pooled(x_shape[1], self.size))}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good, a size that the rules allow and the code rejects is not a difference:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            if x_shape[0] % 4:
                raise ValueError("the rows must be a multiple of 4")
            return {"y": [*x_shape[:-1], x_shape[-1] * torch.cuda.device_count() ** 0 if 0 in x_shape else x_shape[-1]]}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    yield from settled(_compared(ops))


def _compared(ops: Implementations) -> Iterator[tuple[FunctionRef, Difference | None]]:
    """The methods that were executed, each with the difference to show."""
    for outcome in _outcomes(ops):
        method, found = outcome.op.method(INFER), _first(outcome)
        if method is None:
            continue
        if found is None and outcome.checked:
            yield method, None
        elif found is not None and not returns_other_outputs(outcome.op):
            yield method, _difference(outcome.op, method, found)


def _outcomes(ops: Implementations) -> Iterator[OpOutcome]:
    """The outcomes of the calls of implemented ops; nothing where the tree's specification knows no shape functions."""
    return map(outcome_of, judged_ops(ops, "infer-shapes"))


def _first(outcome: OpOutcome) -> Mismatch | None:
    """Return the mismatch to show: one of a row as written, if there is any."""
    found = sorted(outcome.mismatches, key=lambda item: ("row", "completed", "derived").index(item.call.origin))
    return next(iter(found), None)


def _difference(op: OpImplementation, method: FunctionRef, found: Mismatch) -> Difference:
    entry = op.entry
    output = next(item for item in entry.outputs if item.name == found.output)
    node = found.equation.node if found.equation is not None else output.key
    returns = method.function.body.returns
    span = returns[0].span if len(returns) == 1 else method.function.span
    return Difference(
        op,
        method,
        f"{_returned(entry, found)}: {readings(entry, found.call)}",
        entry.at(node),
        Place(method.file.path, span),
        "declared here",
        "returned here",
        found.call.related(entry),
    )


def _returned(entry: OpEntry, found: Mismatch) -> str:
    """Both sides of a mismatch."""
    if found.returned is None:
        return f"`{INFER}()` returns no shape of `{found.output}`, which the manifest declares"
    text = f"`{INFER}()` returns the shape {describe(found.returned)} for `{found.output}`; "
    if found.declared is not None:
        return text + f"the manifest declares {describe(found.declared)}"
    return text + (f"that breaks {stated(found.equation)}" if found.equation is not None else "the manifest differs")


def readings(entry: OpEntry, call: DescribedCall) -> str:
    """Return the values of a call: the shapes of its inputs, and the params in the row."""
    shapes = {name: shape for name, shape in call.shapes(entry).items() if shape is not None}
    params = {item.name: call.bound.values.get(item.name) for item in entry.params if item.name in call.bound.row.data}
    texts = [f"`{name}` is {describe(shape)}" for name, shape in shapes.items()]
    texts += [f"`{name}` is {describe(value)}" for name, value in params.items()]
    return ", ".join(texts) or "it takes no tensors"


@rule("SHP114", "row-refused", parts=_parts)
def row_refused(ops: Implementations) -> Iterator[Diagnostic]:
    """The code rejects a workload row.

    A workload row is a call that must work. opschema interprets the constructor and `_infer_output_shapes()` with its
    values, as for `returned-shape`; a `raise` or `assert` that they certainly reach rejects the row. Rows that leave a
    shape open, and rows that the signature itself does not allow, are not checked. This is checked if the tree's
    specification mentions `_infer_output_shapes`.

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], dtypes: [float16], label: "small"}
      - {x_shape: [1024, 1024], eps: -1.0, dtypes: [float16, float32], label: "large"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            if eps <= 0:
                raise ValueError(f"eps must be positive, got {eps}")
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good, whether it rejects the row depends on the device:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            if eps <= 0:
                raise ValueError(f"eps must be positive, got {eps}")
            if torch.cuda.get_device_capability() < (9, 0):
                raise RuntimeError("needs a newer device")
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    for outcome in _outcomes(ops):
        by_place: dict[Place | None, list[Refusal]] = {}
        for item in outcome.refusals:
            if item.call.origin == "row" and is_explicit(ops.manifest, item.raised):
                by_place.setdefault(item.raised.place, []).append(item)
        yield from (_refused(outcome.op.entry, found) for found in by_place.values())


def _refused(entry: OpEntry, found: list[Refusal]) -> Diagnostic:
    first = found[0]
    text = f": {first.raised.message}" if first.raised.message else ""
    message = f"`{first.method}()` refuses the workload row with `{first.raised.exception}`{text}: {readings(entry, first.call)}"
    rows = tuple(entry.related(item.call.bound.row.node, "it refuses this too") for item in found[1:SHOWN_ROWS])
    place = first.raised.place or entry.place
    related = (Related(place, "refused here"), *rows)
    return Diagnostic(message, entry.at(first.call.bound.row.node), related, ops=(entry.name,))

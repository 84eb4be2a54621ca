"""Workload rows and dtypes that `forward()` refuses: it is followed to the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opschema_cli.evaluation.execution.outcomes import Raised
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_rules.tileops.calls.dtypes import dtype_outcome
from opschema_rules.tileops.calls.outcomes import executed_outcome
from opschema_rules.tileops.model import OpImplementation
from opschema_rules.tileops.mutated_inputs import OpsWithOperators
from opschema_rules.tileops.rules.followed_calls import eager_outcomes, eager_parts, values_of

if TYPE_CHECKING:
    from opschema_rules.tileops.calls.eager import Followed


@rule("SHP116", "row-refused-by-forward", parts=eager_parts)
def row_refused_by_forward(subject: OpsWithOperators) -> Iterator[Diagnostic]:
    """`forward()` rejects a workload row.

    A workload row is a call that must work. opschema interprets `forward()` with its tensors and params, as for `call-fails`; a
    `raise` or `assert` that it certainly reaches rejects the row. Rows that the constructor or `_infer_output_shapes()` rejects
    are findings of `row-refused`, and dtypes that `_validate_dtypes()` rejects are findings of `dtype-refused`. Rows that leave
    a shape or dtype open are not checked, and neither are ops whose constructor takes parameters that the manifest does not
    declare.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.ndim != 3:
                raise ValueError(f"x must be 3-D, got {x.ndim}-D")
            return self.kernel_map["example"](x)
    ```

    Good, whether it rejects the row depends on the device:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not x.is_cuda or torch.cuda.get_device_capability() < (9, 0):
                raise ValueError("needs a newer device")
            return self.kernel_map["example"](x)
    ```
    """
    for outcome in eager_outcomes(subject):
        elsewhere = _refusals_of_methods(outcome.op) if outcome.refused else set[Place]()
        for found in outcome.refused:
            yield from _refusal(outcome.op, found, elsewhere)


def _refusals_of_methods(op: OpImplementation) -> set[Place]:
    """Return the places that reject calls when the constructor or a method that `forward()` calls is followed alone."""
    raised = [item.raised for item in executed_outcome(op).refusals if item.call.origin == "row"]
    if op.entry.manifest.spec.knows("validate-dtypes"):
        raised += [item.raised for item in dtype_outcome(op).refused]
    return {item.place for item in raised if item.place is not None}


def _refusal(op: OpImplementation, found: Followed, elsewhere: set[Place]) -> Iterator[Diagnostic]:
    if isinstance(found.outcome, Raised) and found.outcome.place is not None and found.outcome.place not in elsewhere:
        text = f": {found.outcome.message}" if found.outcome.message else ""
        values = f"{values_of(op, found)}"
        message = f"`{found.method}()` refuses the workload row with `{found.outcome.exception}`{text}: {values}"
        related = (Related(found.outcome.place, "refused here"),)
        yield Diagnostic(message, op.entry.at(found.call.bound.row.node), related, ops=(op.name,))


@rule("DTY111", "dtype-refused-by-forward", parts=eager_parts)
def dtype_refused_by_forward(subject: OpsWithOperators) -> Iterator[Diagnostic]:
    """`forward()` rejects dtypes that the manifest declares.

    opschema interprets `forward()`, without running it, with the shapes of one workload row and every combination of dtypes
    that the manifest declares for the inputs. If it certainly rejects some of them and takes others, the manifest promises
    calls that nobody can make. Ops whose constructor takes parameters that the manifest does not declare are not checked.
    `_validate_dtypes()` alone is checked by `dtype-refused`. This is checked if the tree's specification mentions
    `_infer_output_shapes`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.dtype not in (torch.float16, torch.bfloat16):
                raise ValueError(f"float16 or bfloat16, got {x.dtype}")
            return self.kernel_map["example"](x)
    ```

    Good, it computes in another dtype:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.half() if x.dtype == torch.float32 else x
            if x.dtype not in (torch.float16, torch.bfloat16):
                raise ValueError(f"float16 or bfloat16, got {x.dtype}")
            return self.kernel_map["example"](x)
    ```
    """
    for outcome in eager_outcomes(subject):
        elsewhere = _refusals_of_methods(outcome.op) if outcome.dtypes else set[Place]()
        if outcome.dtypes:
            yield from _refused_dtypes(outcome.op, outcome.dtypes, elsewhere)


def _refused_dtypes(op: OpImplementation, refused: list[Followed], elsewhere: set[Place]) -> Iterator[Diagnostic]:
    first = refused[0].outcome
    key = op.entry.key_of("signature", "inputs") or op.entry.key
    if isinstance(first, Raised) and first.place is not None and first.place not in elsewhere:
        message = f"`forward()` refuses dtypes that the manifest declares, with `{first.exception}`: {values_of(op, refused[0])}"
        yield Diagnostic(message, first.place, (op.entry.related(key, "declared here"),), ops=(op.name,))

"""Dtypes that a hand-written `_validate_dtypes()` refuses or takes: it is executed with declared dtypes and with others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.program import FunctionRef
from opschema_rules.tileops.calls.dtypes import VALIDATE, DtypeOutcome, RefusedDtypes, dtype_outcome
from opschema_rules.tileops.calls.findings import Difference, settled
from opschema_rules.tileops.calls.parts import judged_ops, parts_of
from opschema_rules.tileops.dtypes import dtype_node
from opschema_rules.tileops.model import Implementations, OpEntry, OpImplementation

_parts = parts_of("validate-dtypes", dtype_outcome)


@rule("DTY109", "dtype-refused", parts=_parts)
def dtype_refused(ops: Implementations) -> Iterator[Diagnostic]:
    """`_validate_dtypes()` rejects dtypes that the manifest declares.

    opschema interprets a hand-written `_validate_dtypes()`, without running it, for every combination of dtypes that the
    manifest declares for the inputs: from their unions, or from the rows of `dtype_combos`. If it certainly rejects one,
    the manifest promises a call that nobody can make. A dtype that is passed to the constructor may have any value. This is
    checked if the tree's specification mentions `_validate_dtypes`.

    Bad:

    ```python
    SUPPORTED = (torch.float16, torch.bfloat16)


    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def _validate_dtypes(self, x):
            if x.dtype not in SUPPORTED:
                raise ValueError(f"x must be one of {SUPPORTED}, got {x.dtype}")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, dtype=None, kernel_map=None):
            self.dtype = dtype
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def _validate_dtypes(self, x):
            if x.dtype not in {torch.float16, torch.float32}:
                raise ValueError("float16 or float32")
            if self.dtype is not None and x.dtype != self.dtype:
                raise ValueError("not the dtype of the op")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    yield from settled(
        (method, _refusal(op, method, outcome.refused) if outcome.refused else None)
        for op, method, outcome in _outcomes(ops)
    )


def _outcomes(ops: Implementations) -> Iterator[tuple[OpImplementation, FunctionRef, DtypeOutcome]]:
    """Yield the outcomes of the hand-written methods of implemented ops, if they are known."""
    for op in judged_ops(ops, "validate-dtypes"):
        outcome, method = dtype_outcome(op), op.method(VALIDATE)
        if method is not None and outcome.known:
            yield op, method, outcome


def _refusal(op: OpImplementation, method: FunctionRef, refused: list[RefusedDtypes]) -> Difference:
    entry, first = op.entry, refused[0]
    name = _blamed(entry, refused)
    raised = first.raised
    text = (
        f"`{VALIDATE}()` refuses dtypes that the manifest declares, with `{raised.exception}`: {_written(first.dtypes)}"
    )
    place = raised.place or Place(method.file.path, method.function.span)
    tensor = next(item for item in entry.inputs if item.name == name)
    return Difference(op, method, text, entry.at(dtype_node(entry, tensor)), place, "declared here", "refused here")


def _blamed(entry: OpEntry, refused: list[RefusedDtypes]) -> str:
    """Return the input whose dtype is the same in all rejected combinations but has others; the first input if there is none."""
    names = [item.name for item in entry.inputs if item.name in refused[0].dtypes]
    for name in names:
        several = len(entry.dtypes.dtypes.get(name, ())) > 1
        if several and len({item.dtypes[name] for item in refused}) == 1:
            return name
    return names[0]


def _written(dtypes: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` is {dtype}" for name, dtype in dtypes.items())


@rule("DTY110", "dtype-accepted", severity="warning", parts=_parts)
def dtype_accepted(ops: Implementations) -> Iterator[Diagnostic]:
    """`_validate_dtypes()` accepts a dtype that the manifest does not declare.

    opschema interprets a hand-written `_validate_dtypes()`, without running it, with dtypes that the manifest does not
    declare. If it certainly rejects some of them and accepts others, the manifest and the method disagree on the supported
    dtypes. A method that rejects no dtype of an input leaves the check to other code and is not reported. This is checked
    if the tree's specification mentions `_validate_dtypes`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def _validate_dtypes(self, x):
            if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
                raise ValueError(f"unsupported dtype {x.dtype}")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good, it leaves the dtype to the kernel:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def _validate_dtypes(self, x):
            if x.ndim == 0:
                raise ValueError("x must have dimensions")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    yield from settled(
        (method, _acceptance(op, method, outcome) if outcome.accepted else None)
        for op, method, outcome in _outcomes(ops)
    )


def _acceptance(op: OpImplementation, method: FunctionRef, outcome: DtypeOutcome) -> Difference:
    entry, first = op.entry, outcome.accepted[0]
    taken = quoted([item.dtype for item in outcome.accepted if item.name == first.name])
    text = f"`{VALIDATE}()` takes {taken} for `{first.name}`; the manifest declares {quoted(first.declared)}"
    tensor = next(item for item in entry.inputs if item.name == first.name)
    place = Place(method.file.path, method.function.span)
    return Difference(op, method, text, entry.at(dtype_node(entry, tensor)), place, "declared here", "taken here")

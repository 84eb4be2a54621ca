"""Calls of workload rows, followed through `forward()` to the kernels, and the counts that `eval_roofline()` returns after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.execution.outcomes import Raised
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import Part, rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.describe import describe
from opschema_cli.source.program import FunctionRef, ValueRef
from opschema_rules.tileops.calls.described import DescribedCall
from opschema_rules.tileops.calls.findings import Difference, is_error, settled
from opschema_rules.tileops.calls.outcomes import outcome_of, settles_calls
from opschema_rules.tileops.calls.outside_writes import may_be_set_outside
from opschema_rules.tileops.calls.parts import judged_ops, part
from opschema_rules.tileops.formulas import runner
from opschema_rules.tileops.model import Implementations, OpImplementation
from opschema_rules.tileops.mutated_inputs import OpsWithOperators
from opschema_rules.tileops.rules.returned_fakes import fake_outcomes, makers
from opschema_rules.tileops.rules.returned_shapes import readings

if TYPE_CHECKING:
    from opschema_rules.tileops.calls.code import Code
    from opschema_rules.tileops.calls.eager import EagerOutcome, Followed, OtherCount
    from opschema_rules.tileops.calls.fakes import Compiled


def _outcome(subject: OpsWithOperators, op: OpImplementation) -> list[EagerOutcome]:
    # Not at the top: a run that knows all agreements executes nothing.
    from opschema_rules.tileops.calls.eager import eager_outcome

    outcome_of(op)
    return [eager_outcome(op, _compiled(subject), makers(subject))]


def _judged(subject: OpsWithOperators) -> Iterator[OpImplementation]:
    return judged_ops(Implementations(subject.manifest, subject.manifest.implementations), "infer-shapes")


def eager_parts(subject: OpsWithOperators) -> Iterator[Part]:
    """The calls of each op."""
    for op in _judged(subject):
        yield part(op, partial(_outcome, subject))


@cached_on_argument
def _compiled(subject: OpsWithOperators) -> Callable[[Code], Compiled]:
    from opschema_rules.tileops.calls.fakes import Compiled

    return cache(lambda code: Compiled(code, makers(subject), eager=True))


@cached_on_argument
def eager_outcomes(subject: OpsWithOperators) -> list[EagerOutcome]:
    """The outcomes of implemented ops, each followed once."""
    return [outcome for op in _judged(subject) for outcome in _outcome(subject, op)]


@rule("ROO106", "roofline-code", parts=eager_parts)
def roofline_code(subject: OpsWithOperators) -> Iterator[Diagnostic]:
    """A hand-written `eval_roofline()` returns other counts than the manifest's formulas.

    opschema interprets `forward()` with the shapes and params of a workload row, without running it, then `eval_roofline()`,
    and evaluates `flops` and `bytes` on the same row. Benchmarks report what the method returns; readers and other tools
    use the manifest. Counts that depend on something unknown are not compared, and neither are methods that are generated
    from the manifest, or formulas in a function (`roofline.func`). If several ops share a method and some agree with it, the
    entries of the others are reported. This is checked if the tree's specification mentions `_infer_output_shapes`.

    Bad, the weight is read too:

    ```yaml
    roofline:
      vars:
        N: "product(x.shape)"
      flops: "2 * N"
      bytes: "(2 * N + x.shape[1]) * elem_bytes"
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def eval_roofline(self):
            return 2 * self.n, 2 * self.n * self.dtype.itemsize

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.n, self.dtype = x.numel(), x.dtype
            return self.kernel_map["example"](x)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def eval_roofline(self):
            rows, columns, size = self.spec
            return rows * columns * 2, size * (rows + rows) * columns

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.spec = (*x.shape, x.element_size())
            return self.kernel_map["example"](x)
    ```
    """
    yield from settled(_compared(subject))


def _compared(subject: OpsWithOperators) -> Iterator[tuple[FunctionRef, Difference | None]]:
    """Yield the methods of ops with known counts, each with its difference."""
    for outcome in eager_outcomes(subject):
        method = runner(outcome.op.entry).written
        if method is not None and outcome.counts:
            yield method, _difference(outcome.op, method, outcome.counts[0])
        elif method is not None and not outcome.checked.isdisjoint(("flops", "bytes")):
            yield method, None


def _difference(op: OpImplementation, method: FunctionRef, found: OtherCount) -> Difference:
    formula, call = found.declared.formula, found.followed.call
    returns = method.function.body.returns
    span = returns[0].span if len(returns) == 1 else method.function.span
    text = (
        f"`eval_roofline()` returns {describe(found.returned)} for `{formula.where}`; the manifest's formula is"
        f" {describe(found.declared.value)}: {values_of(op, found.followed)}"
    )
    declared, observed = op.entry.at(formula.node), Place(method.file.path, span)
    return Difference(op, method, text, declared, observed, "declared here", "returned here", call.related(op.entry))


def values_of(op: OpImplementation, found: Followed) -> str:
    """The values of a call, with the dtypes of its tensors."""
    shapes = found.call.shapes(op.entry)
    known = [(item.name, found.dtypes.get(item.name)) for item in op.entry.inputs if shapes[item.name] is not None]
    dtypes = ", ".join(f"`{name}` {dtype}" for name, dtype in known if dtype is not None)
    return readings(op.entry, found.call) + (f"; {dtypes}" if dtypes else "")


@rule("SIG209", "call-fails", parts=eager_parts)
def call_fails(subject: OpsWithOperators) -> Iterator[Diagnostic]:
    """`forward()` or `eval_roofline()` ends with an error of Python's own.

    opschema interprets both with the tensors and params of a workload row, without running them, up to the kernels: the
    functions of the op's operators, its methods and helpers are followed. Reported is a `TypeError`, `AttributeError`,
    `KeyError` or `NameError` that they certainly reach: a call with a missing argument, an attribute that nothing sets, a
    key that a dictionary does not have, an operator that was never registered (`None` is called). What depends on something
    unknown is not followed. This is checked if the tree's specification mentions `_infer_output_shapes`.

    Bad, nothing sets `self.scale`:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.scale)
    ```

    Bad, the operator passes its method too few arguments:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x, self._instance_key)

        def eager(self, x, rows):
            return self.kernel_map["example"](x, rows)


    @torch.library.custom_op("kit::example", mutates_args=())
    def _example(x: torch.Tensor, instance_key: str) -> torch.Tensor:
        return get_instance(instance_key).eager(x)


    def get_instance(key): ...
    ```

    Good, whether it fails depends on the kernel:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kernel = self.kernel_map["example"]
            return {2: kernel}[x.ndim](x, self.eps, mode=getattr(kernel, "mode", None))
    ```
    """
    refused = [outcome_of(op) for op in _judged(subject)]
    for found in refused:
        for item in found.refusals if settles_calls(found.op) else ():
            if is_error(subject.manifest, item.call, item.raised):
                yield from _failure(found.op, f"`{item.method}()`", item.raised, item.call)
    sound = {id(found.op) for found in refused if not found.refusals}
    for outcome in eager_outcomes(subject):
        for followed in outcome.broken if id(outcome.op) in sound else ():
            if isinstance(followed.outcome, Raised):
                yield from _failure(outcome.op, f"`{followed.method}()`", followed.outcome, followed.call)
    sound -= {id(outcome.op) for outcome in eager_outcomes(subject) if outcome.broken}
    for fake in fake_outcomes(subject):
        if fake.broken is not None and id(fake.op) in sound:
            call, raised = fake.broken
            yield from _failure(fake.op, "with its fake, `forward()`", raised, call)


def _failure(op: OpImplementation, method: str, raised: Raised, call: DescribedCall) -> Iterator[Diagnostic]:
    if raised.place is not None and not may_be_set_outside(op, raised):
        text = f": {raised.message}" if raised.message else ""
        related = call.related(op.entry) or (op.entry.related(op.entry.key, "declares this op"),)
        yield Diagnostic(f"{method} fails with `{raised.exception}`{text}", raised.place, related, ops=(op.name,))


@rule("SIG210", "operator-not-listed", parts=eager_parts)
def operator_not_listed(subject: OpsWithOperators) -> Iterator[Diagnostic]:
    """`forward()` calls an operator that `compile_op_names` does not list.

    `compile_op_names` names the operators of an op: tests hold the nodes of a compiled graph against it. opschema interprets
    `forward()` with the tensors of a workload row, as for `call-fails`, and notes the operators that it certainly calls, not
    those that these call themselves. An op that lists none is not checked, and neither is a name that nothing in the tree
    registers (`mutates-args`). The finding is an error for an op that promises `torch_compile_fullgraph: true`, else a warning.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::exmaple",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x)


    @torch.library.custom_op("kit::example", mutates_args=())
    def _example(x: torch.Tensor) -> torch.Tensor:
        return x.clone()


    @torch.library.custom_op("kit::exmaple", mutates_args=())
    def _other(x: torch.Tensor) -> torch.Tensor:
        return x.clone()
    ```

    Good, an operator that another one calls is no node of the graph:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x)


    @torch.library.custom_op("kit::example", mutates_args=())
    def _example(x: torch.Tensor) -> torch.Tensor:
        return _inner(x)


    @torch.library.custom_op("kit::inner", mutates_args=())
    def _inner(x: torch.Tensor) -> torch.Tensor:
        return x.clone()
    ```
    """
    by_op = {id(item.op): item for item in subject.ops}
    for outcome in eager_outcomes(subject):
        item = by_op[id(outcome.op)]
        listed = item.listed() if outcome.operators else None
        others = sorted(outcome.operators.difference(listed or ()))
        if listed and others and not item.writes(()).unregistered:
            yield _not_listed(subject, outcome.op, others[0], listed)


def _not_listed(subject: OpsWithOperators, op: OpImplementation, name: str, listed: Sequence[str]) -> Diagnostic:
    attribute = op.attribute("compile_op_names")
    own = isinstance(attribute, ValueRef) and bool(attribute.assign.value)
    place = Place(attribute.file.path, attribute.assign.span) if own and isinstance(attribute, ValueRef) else None
    text = f"`forward()` calls the operator `{name}`; `compile_op_names` lists {quoted(listed)}"
    stated = [item.stated for item in subject.operators.operators if name in item.names]
    related = tuple(Related(item, f"`{name}` is defined here") for item in stated[:1])
    severity = Severity.ERROR if op.entry.data_at("torch_compile_fullgraph") is True else Severity.WARNING
    return Diagnostic(
        text, place or Place(op.ref.file.path, op.ref.cls.span), related, ops=(op.name,), severity=severity
    )

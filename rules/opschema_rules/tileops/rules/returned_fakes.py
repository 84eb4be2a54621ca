"""Shapes and dtypes that the fakes of an op's operators return, by interpreting `forward()` with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import Part, rule
from opschema_cli.schema.describe import describe
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import FunctionRef
from opschema_rules.tileops.calls.findings import Difference, settled
from opschema_rules.tileops.calls.outcomes import outcome_of
from opschema_rules.tileops.calls.parts import judged_ops, part
from opschema_rules.tileops.model import Implementations, OpImplementation
from opschema_rules.tileops.mutated_inputs import OpsWithOperators
from opschema_rules.tileops.rules.returned_shapes import readings

if TYPE_CHECKING:
    from opschema_rules.tileops.calls.code import Code
    from opschema_rules.tileops.calls.fakes import Compiled, FakeMismatch, FakeOutcome, Makers


def _outcome(subject: OpsWithOperators, op: OpImplementation) -> list[FakeOutcome]:
    from opschema_rules.tileops.calls.fakes import fake_outcome

    return [] if outcome_of(op).mismatches else [fake_outcome(op, _compiled(subject), makers(subject))]


def _with_fakes(subject: OpsWithOperators) -> Iterator[OpImplementation]:
    by_op, fakes = {id(item.op): item for item in subject.ops}, subject.operators.fakes.keys()
    ops = Implementations(subject.manifest, subject.manifest.implementations)
    for op in judged_ops(ops, "infer-shapes"):
        if not fakes.isdisjoint(by_op[id(op)].listed() or ()) or makers(subject).of(op):
            yield op


def _parts(subject: OpsWithOperators) -> Iterator[Part]:
    """The calls of each op."""
    for op in _with_fakes(subject):
        yield part(op, partial(_outcome, subject))


@cached_on_argument
def makers(subject: OpsWithOperators) -> Makers:
    """The calls that define the operators of a tree, and the fakes of operators."""
    from opschema_rules.tileops.calls.fakes import Makers

    return Makers(subject.operators)


@cached_on_argument
def _compiled(subject: OpsWithOperators) -> Callable[[Code], Compiled]:
    from opschema_rules.tileops.calls.fakes import Compiled

    return cache(lambda code: Compiled(code, makers(subject)))


@rule("SHP115", "fake-output", parts=_parts)
def fake_output(subject: OpsWithOperators) -> Iterator[Diagnostic]:
    """The fake of an operator returns another shape or dtype than the manifest declares.

    Under `torch.compile` the operators of an op return what their fakes return, so `forward()` does too. opschema interprets it
    with the fakes, for workload rows and for other sizes and dtypes that the entry allows, and compares the results with the
    outputs that the manifest declares; no code of the tree is run. Operators are found however they are registered: by
    decorators, in helpers and loops, through a library.

    Ops whose operators have no fakes are not checked, and neither are outputs whose shape or dtype depends on
    something unknown (`--show-unresolved` lists them). If `_infer_output_shapes()` is already reported (`returned-shape`), its op
    is not reported again. If several ops share a fake and some agree with it, the entries of the others are reported.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x, self._instance_key)


    @torch.library.custom_op("kit::example", mutates_args=())
    def _example(x: torch.Tensor, instance_key: str) -> torch.Tensor:
        return get_instance(instance_key).kernel_map["example"](x)


    @_example.register_fake
    def _(x: torch.Tensor, instance_key: str) -> torch.Tensor:
        return x.new_empty(x.shape, dtype=torch.float32)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            flat = _example(x.reshape(-1, x.shape[-1]), self._instance_key)  # the fake sees another shape
            return flat.reshape(x.shape)


    @torch.library.custom_op("kit::example", mutates_args=())
    def _example(x: torch.Tensor, instance_key: str) -> torch.Tensor:
        return get_instance(instance_key).kernel_map["example"](x)


    @_example.register_fake
    def _(x: torch.Tensor, instance_key: str) -> torch.Tensor:
        return torch.empty_like(x)
    ```
    """
    yield from settled(_compared(subject))


def _compared(subject: OpsWithOperators) -> Iterator[tuple[tuple[str, int], Difference | None]]:
    """Yield the fakes of each op, by file and place, each with its difference."""
    for outcome in fake_outcomes(subject):
        if outcome.mismatch is not None:
            fake = _ref(outcome.mismatch.fake)
            yield (fake.file.path, fake.function.start), _difference(outcome, outcome.mismatch)
        else:
            yield from ((fake, None) for fake in outcome.fakes)


@cached_on_argument
def fake_outcomes(subject: OpsWithOperators) -> list[FakeOutcome]:
    """The outcomes of implemented ops with fakes whose shapes are not wrong already."""
    return [outcome for op in _with_fakes(subject) for outcome in _outcome(subject, op)]


def _difference(outcome: FakeOutcome, found: FakeMismatch) -> Difference:
    op, entry = outcome.op, outcome.op.entry
    output = next(item for item in entry.outputs if item.name == found.output)
    dtypes = ", ".join(
        f"`{name}` is `{dtype}`" for name, dtype in found.dtypes.items() if entry.input(name) is not None
    )
    return Difference(
        op,
        _ref(found.fake),
        f"with its fake, `forward()` returns {_side(found.returned)} for `{found.output}`; the manifest declares"
        f" {_side(found.declared)}: {readings(entry, found.call)}, {dtypes}",
        entry.at(output.key),
        Place(found.fake.file.path, _ref(found.fake).function.span),
        "declared here",
        "the fake",
        found.call.related(entry),
    )


def _side(value: object) -> str:
    return f"the dtype `{value}`" if isinstance(value, str) else f"the shape {describe(value)}"  # type: ignore[arg-type]


def _ref(fake: Body) -> FunctionRef:
    assert fake.function is not None  # a fake is a function
    return FunctionRef(fake.file, fake.function)

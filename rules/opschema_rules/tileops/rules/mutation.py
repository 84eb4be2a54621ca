"""Inputs that an op's registered operators write, against those that the manifest marks as mutated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.schema.align import Slot
from opschema_rules.tileops.model import OpImplementation
from opschema_rules.tileops.mutated_inputs import OpWithOperators, Writes


@rule("SIG304", "mutates-args")
def mutates_args(subject: OpWithOperators) -> Iterator[Diagnostic]:
    """The custom operators of an op write to other inputs than the manifest marks with `mutated: true`.

    `mutates_args` of a `torch.library.custom_op`, or its schema, declares to the compiler which tensors a call changes;
    `mutated: true` declares it in the manifest. Both must name the same inputs. The operators of an op are those that
    `compile_op_names` lists and those that `forward()` calls, however they are registered: by decorators, in helpers and
    loops, through a library; one that it lists must be registered somewhere in the tree. For an op without any, the
    operators of the kernels in `default_kernel_map` count, if `forward()` passes its own arguments on by name. The tensor
    arguments of a listed operator are the inputs, matched by name or else by position; other tensors that it writes to are
    output buffers, except attributes of the op: a tensor that outlives the call is an input. That a marked input is never
    written is reported where all operators of the op are known. Nothing is reported for an operator whose own declaration
    is wrong (`undeclared-mutation`, `unused-mutation`). The rule applies if the tree's specification mentions
    `mutated: true`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x, self._instance_key)


    @torch.library.custom_op("kit::example", mutates_args=("x",))
    def _example(x: torch.Tensor, instance_key: str) -> torch.Tensor: ...
    ```

    Bad, a buffer that no input declares:

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self.seen = torch.zeros(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x, self.seen)


    @torch.library.custom_op("kit::example", mutates_args=("seen",))
    def _example(x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor: ...
    ```

    Bad, marked and never written:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", mutated: true}
    ```

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x, self._instance_key)


    @torch.library.custom_op("kit::example", mutates_args=())
    def _example(x: torch.Tensor, instance_key: str) -> torch.Tensor: ...
    ```

    Good, `out` is a buffer, not an input:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32", mutated: true}
    ```

    ```python
    class ExampleFwdOp(Op):
        compile_op_names = ("kit::example",)

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example(x, torch.empty_like(x))


    @torch.library.custom_op("kit::example", mutates_args=["x", "out"])
    def _example(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor: ...
    ```
    """
    op = subject.op
    inputs = op.entry.input_slots
    if inputs is None or not op.entry.manifest.spec.knows("mutated"):
        return
    writes = subject.writes([slot.name for slot in inputs])
    yield from _own(op, writes)
    for name in writes.unregistered:
        text = f"`compile_op_names` lists `{name}`, which nothing in the tree registers"
        place = Place(op.ref.file.path, op.ref.cls.span)
        related = (op.entry.related(op.entry.key, "declares this op"),)
        yield Diagnostic(text, place, related, ops=(op.name,), severity=op.entry.severity)
    for slot in inputs:
        tensor = op.entry.input(slot.name)
        if tensor is None or tensor.misstates("mutated"):
            continue
        if slot.name in writes.places and not tensor.mutated:
            text = f"an operator of the op writes `{slot.name}`, which the manifest does not mark `mutated: true`"
            found = _diagnostic(op, text, slot, writes.places[slot.name], "written here")
        elif tensor.mutated and slot.name not in writes.places and writes.complete:
            text = f"the manifest marks `{slot.name}` as mutated, but no operator of the op writes it"
            found = _diagnostic(op, text, slot, writes.stated, "not named here")
        else:
            continue
        if not any(
            operator.misdeclared for operator in writes.operators
        ):  # which is reported once, where it is declared
            yield found


def _own(op: OpImplementation, writes: Writes) -> Iterator[Diagnostic]:
    """Yield findings on attributes of the op that its operators write without any declaration for callers."""
    key = op.entry.key_of("signature", "inputs") or op.entry.key
    declared = {f"self.{param.name}" for param in op.entry.params}
    for name, places in writes.own.items():
        if name in declared:
            continue
        text = f"an operator of the op writes `{name}`, which no input of the manifest declares"
        related = tuple(Related(place, "written here") for place in dict.fromkeys(places))
        if not any(operator.misdeclared for operator in writes.operators):
            yield Diagnostic(text, op.entry.at(key), related, ops=(op.name,), severity=op.entry.severity)


def _diagnostic(op: OpImplementation, text: str, slot: Slot, places: Sequence[Place], note: str) -> Diagnostic:
    flag = op.entry.key_of("signature", "inputs", slot.name, "mutated")
    related = tuple(Related(place, note) for place in places)
    place = op.entry.at(flag if flag is not None else slot.span)
    return Diagnostic(text, place, related, ops=(op.name,), severity=op.entry.severity)

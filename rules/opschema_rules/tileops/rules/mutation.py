"""What an op's registered operators write against what the manifest marks as mutated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.schema.align import Slot
from opschema_cli.source.program import Folded, ValueRef
from opschema_cli.source.python import Expr, Function, Param, PythonFile
from opschema_rules.tileops.model import OpImplementation


@rule("SIG304", "mutates-args")
def mutates_args(op: OpImplementation) -> Iterator[Diagnostic]:
    """The operators of an op write other inputs than the manifest marks `mutated: true`.

    `mutates_args` of a `torch.library.custom_op` tells the compiler which tensors a call changes, `mutated: true` tells the
    manifest's readers. Both must name the same inputs, over all operators that `compile_op_names` lists. An operator's
    tensor arguments are the inputs, by their names or else in their order; what it writes beyond them is an output
    buffer. Where a name, an operator or its `mutates_args` is not literal, nothing is reported. It holds where the tree's
    specification knows `mutated: true`.

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

    Good, `out` is a buffer and no input:

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
    inputs = op.entry.input_slots
    if inputs is None or not op.entry.manifest.spec.knows("mutated"):
        return
    writes = _writes(op, [slot.name for slot in inputs])
    for slot in inputs if writes is not None else ():
        tensor = op.entry.input(slot.name)
        if tensor is None or writes is None or tensor.misstates("mutated"):
            continue
        if slot.name in writes.places and not tensor.mutated:
            text = f"an operator of the op writes `{slot.name}`, which the manifest does not mark `mutated: true`"
            yield _diagnostic(op, text, slot, writes.places[slot.name], "written here")
        elif tensor.mutated and slot.name not in writes.places:
            text = f"the manifest marks `{slot.name}` as mutated, but no operator of the op writes it"
            yield _diagnostic(op, text, slot, writes.lists, "not named here")


def _diagnostic(op: OpImplementation, text: str, slot: Slot, places: Sequence[Place], note: str) -> Diagnostic:
    flag = op.entry.key_of("signature", "inputs", slot.name, "mutated")
    related = tuple(Related(place, note) for place in places)
    place = op.entry.at(flag if flag is not None else slot.span)
    return Diagnostic(text, place, related, ops=(op.name,), severity=op.entry.severity)


class _Writes(msgspec.Struct):
    """Where operators say that they write each input, and where all their ``mutates_args`` stand."""

    places: dict[str, list[Place]] = msgspec.field(default_factory=dict)
    lists: list[Place] = msgspec.field(default_factory=list)


def _writes(op: OpImplementation, inputs: Sequence[str]) -> _Writes | None:
    """What the op's operators write; None where it has none, or where a part is not literal."""
    attribute = op.attribute("compile_op_names")
    names = _fold(op, attribute.file, attribute.assign.value) if isinstance(attribute, ValueRef) else None
    if not isinstance(attribute, ValueRef) or not isinstance(names, tuple | list) or not names:
        return None
    found = _Writes()
    for name in names:
        operator = _operator(op, attribute.file, name)
        if operator is None or not _collect(attribute.file, *operator, inputs, found):
            return None
    return found


def _operator(op: OpImplementation, file: PythonFile, name: object) -> tuple[Function, Expr] | None:
    """The only module-level function registered as ``name``, and its ``mutates_args``."""
    found = [
        (function, decorator.keyword("mutates_args"))
        for function in file.body.functions
        for decorator in function.decorators
        if decorator.callee.rpartition(".")[2] == "custom_op"
        and [_fold(op, file, item) for item in decorator.positional()[:1]] == [name]
    ]
    function, listed = found[0] if len(found) == 1 else (None, None)
    return (function, listed) if function is not None and listed is not None else None


def _collect(file: PythonFile, function: Function, listed: Expr, inputs: Sequence[str], found: _Writes) -> bool:
    """Note what one operator writes; False where its ``mutates_args`` is not literal or names no known tensor."""
    if listed.kind not in ("tuple", "list", "set") or not all(isinstance(item.value, str) for item in listed.items):
        return False
    found.lists.append(Place(file.path, listed.span))
    tensors = [param.name for param in function.params if _is_tensor(param)]
    by_name = set(inputs) <= set(tensors)
    for item in listed.items:
        name = str(item.value)
        if not by_name:
            if name not in tensors:
                return False
            place = tensors.index(name)
            name = inputs[place] if place < len(inputs) else name
        found.places.setdefault(name, []).append(Place(file.path, item.span))
    return True


def _is_tensor(param: Param) -> bool:
    annotation = param.annotation
    return annotation is not None and any(
        item.kind == "name" and item.text.rpartition(".")[2] == "Tensor" for item in annotation.walk()
    )


def _fold(op: OpImplementation, file: PythonFile, expr: Expr | None) -> object:
    folded = op.entry.manifest.evaluator.fold(file, expr) if expr is not None else None
    return folded.value if isinstance(folded, Folded) else None

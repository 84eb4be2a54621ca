"""The orchestration's own tensors that none of its tasks uses."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.pypto.model import Direction, Program
from opschema_rules.pypto.staging import uses_of


@rule("PTO122", "orch-tensor-unused", severity="warning", needs=(CPP,))
def orch_tensor_unused(program: Program) -> Iterator[Diagnostic]:
    """A tensor that the orchestration declares and nothing uses.

    The runtime copies an `OUT` tensor back to the host although nothing wrote its memory on the device: the result is undefined.
    Often a task writes another tensor instead, or was removed. For an `IN` or `INOUT` tensor this is an info: it is copied
    for nothing, or was mixed up with another.

    Nothing is reported if the orchestration cannot be followed, or if it is one of several `callables`. `orch-out-read` reports
    an `OUT` tensor that is only read.

    Bad:

    ```cpp
    const ChipTensor &a = orch_args.tensor(0).ref();
    const ChipTensor &b = orch_args.tensor(1).ref();
    const ChipTensor &c = orch_args.tensor(2).ref();
    TensorCreateInfo created(c.shapes, 2, DataType::FLOAT32);
    CoreTaskArgs p;
    p.add_input(a, b);
    p.add_output(created);
    rt_submit_aiv_task(0, p);
    ```

    Good:

    ```cpp
    const ChipTensor &a = orch_args.tensor(0).ref();
    const ChipTensor &b = orch_args.tensor(1).ref();
    const ChipTensor &c = orch_args.tensor(2).ref();
    CoreTaskArgs p;
    p.add_input(a, b);
    p.add_output(c);
    rt_submit_aiv_task(0, p);
    ```
    """
    part = program.orchestration
    entry = part.entry if part is not None else None
    if (
        part is None
        or entry is None
        or entry.unresolved
        or program.listed
        or part.signature is None
        or not entry.submits
    ):
        return
    uses = uses_of(entry)
    where = Related(Place(part.source or "", entry.span), "all that it does")
    for index, declared in enumerate(part.signature.slots or ()):
        if declared.direction is not Direction.SCALAR and not uses.get(index):
            is_output = declared.direction is Direction.OUT
            effect = "no task writes it: its memory is undefined" if is_output else "nothing uses it"
            yield Diagnostic(
                f"tensor {index} of the orchestration is declared `{declared.direction.value}`, and {effect}",
                part.at(declared.expr),
                (where,),
                severity=Severity.WARNING if is_output else Severity.INFO,
            )

"""The orchestration's own tensors that none of its tasks writes or uses."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.pypto.model import Direction, Program
from opschema_rules.pypto.staging import uses_of


@rule("PTO122", "orch-out-unwritten", severity="warning", needs=(CPP,))
def orch_out_unwritten(program: Program) -> Iterator[Diagnostic]:
    """A tensor that the orchestration declares `OUT` but no task writes.

    The runtime copies it back to the host, although its memory on the device was never filled: the result is undefined. Often a
    task writes another tensor instead, or was removed. A tensor that is declared `IN` or `INOUT` and never used is an info: it is
    copied for nothing, and may have been mixed up with another.

    Nothing is reported if the orchestration cannot be followed, or if it is one of several `callables`.

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
        own = uses.get(index, [])
        if declared.direction is Direction.OUT and all(use.effect == "in" for use in own):
            message = (
                f"tensor {index} of the orchestration is declared `OUT`, and no task writes it: its memory is undefined"
            )
            yield Diagnostic(message, part.at(declared.expr), (where,))
        elif declared.direction is not Direction.SCALAR and not own:
            message = (
                f"tensor {index} of the orchestration is declared `{declared.direction.value}`, and nothing uses it"
            )
            yield Diagnostic(message, part.at(declared.expr), (where,), severity=Severity.INFO)

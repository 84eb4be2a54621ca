"""Scalars that stand before tensors, in signatures and in payloads."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.pypto import proofs
from opschema_rules.pypto.claims import misplaced
from opschema_rules.pypto.facts import Payload, Slot
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.rules.declaring import declaring
from opschema_rules.pypto.task_matching import Task, tasks


@rule("PTO104", "scalar-position", fixable="safe", proof=proofs.RECORDED, needs=(CPP,))
def scalar_position(program: Program) -> Iterator[Diagnostic]:
    """A scalar before a tensor.

    All tensors of a payload are added before its scalars: the runtime rejects a tensor after a scalar, and the task fails.
    A signature may omit scalars; if it lists them, they follow all tensors: entry *i* is for tensor *i*, so a scalar before
    a tensor shifts every later direction. In the orchestration's own signature, this determines what is copied to the
    device and back; in a kernel's signature only the dump is wrong, which is a warning (and older runtimes, before simpler
    `b1e4bd239`, ignore it).

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.SCALAR, D.IN, D.OUT]},
    ]
    ```

    Bad:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.SCALAR, D.IN, D.IN, D.OUT],
    }
    ```

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_scalar(16);
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```

    Good:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT, D.SCALAR]},
    ]
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    p.add_scalar(16);
    rt_submit_aiv_task(0, p);
    ```
    """
    yield from _in_orchestration(program)
    if program.contract.rule == "widest" and program.contract.dumps:
        for kernel in program.kernels:
            yield from _in_kernel(program, kernel)
    for task in tasks(program):
        for payload in task.payloads:
            yield from _in_payload(task, payload)


def _in_orchestration(program: Program) -> Iterator[Diagnostic]:
    part = program.orchestration
    if part is not None:
        for scalar in misplaced(part.signature)[:1]:
            yield Diagnostic(
                "a scalar stands before a tensor in the orchestration's `signature`, and shifts all directions after it: put "
                "it last, or leave it out",
                part.at(scalar.expr),
            )


def _in_kernel(program: Program, kernel: Kernel) -> Iterator[Diagnostic]:
    for scalar in misplaced(kernel.signature)[:1]:
        yield Diagnostic(
            f"a scalar stands before a tensor in the signature of {kernel.title}, and shifts all directions after it: put "
            "it last, or leave it out",
            kernel.at(scalar.expr),
            (),
            declaring(program, kernel),
            (kernel.title,),
            severity=Severity.WARNING,
        )


def _in_payload(task: Task, payload: Payload) -> Iterator[Diagnostic]:
    scalar: Slot | None = None
    for slot in payload.slots:
        if slot.kind == "scalar":
            scalar = scalar or slot
        elif scalar is not None:
            yield Diagnostic(
                "a tensor is added after a scalar, so that the runtime rejects the task: add all tensors first",
                task.at(slot.span),
                (task.related(scalar.span, "the scalar"),),
                ops=tuple(dict.fromkeys(kernel.title for kernel in task.kernels)),
            )
            return

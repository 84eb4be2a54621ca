"""Numbers of arguments against the limits of the runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_rules.pypto.claims import entries
from opschema_rules.pypto.facts import Payload, Slot
from opschema_rules.pypto.model import Declared, Direction, Kernel, OrchestrationPart, Program
from opschema_rules.pypto.task_matching import Task, entry_of, tasks


@rule("PTO105", "arg-limit", needs=(CPP,))
def arg_limit(program: Program) -> Iterator[Diagnostic]:
    """More arguments than the runtime has room for.

    A kernel takes at most 32 tensors and 16 scalars, the orchestration itself 256 and 128. A longer signature is rejected
    when the program is loaded, a longer payload when it is filled, so its task fails; an `expected_arg_count` beyond the
    limit is never met. The limits are those of the runtime in the tree, read from its `arg_direction.h`: before simpler
    `19b2c0be5` a kernel could have 16 tensors and 32 scalars, before `b5261a7f3` the orchestration 128 tensors.
    `max-tensors` and `max-scalars` in the configuration set those of a kernel.

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},
    ]
    ```

    ```toml opschema.toml
    [pypto]
    max-tensors = 2
    ```

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    p.add_scalar(1, 2, 3);
    rt_submit_aiv_task(0, p);
    ```

    ```toml opschema.toml
    [pypto]
    max-scalars = 2
    ```

    Good, each kernel of a task has the same arguments, and the limit is for the payload that they share:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "cube.cpp", "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
        {"func_id": 1, "source": "vector.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},
    ]
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    p.add_scalar(1, 2);
    MixedKernels mixed = {0, 1, 1};
    rt_submit_task(mixed, p);
    ```

    ```toml opschema.toml
    [pypto]
    max-tensors = 3
    max-scalars = 2
    ```
    """
    yield from _of_orchestration(program)
    long = {kernel for kernel in program.kernels if _beyond(entries(kernel), program.contract.core_tensors)}
    for kernel in program.kernels:
        if kernel in long:
            yield _of_kernel(program, kernel)
    for task in tasks(program):
        if not long.intersection(task.kernels):
            yield from _of_task(task)


def _beyond(signature: Sequence[Declared], limit: int) -> bool:
    return 0 < limit < len(signature)


def _of_kernel(program: Program, kernel: Kernel) -> Diagnostic:
    """Return a finding on the entry over the limit; scalars in a list count too."""
    signature, limit = entries(kernel), program.contract.core_tensors
    says = program.contract.limits_source
    count = len(signature)
    scalars = sum(slot.direction is Direction.SCALAR for slot in signature)
    hint = "leave the scalars out" if scalars >= count - limit else "split the kernel"
    return Diagnostic(
        f"the signature of {kernel.title} has {count} entries, and the runtime takes {limit} ({says}): {hint}",
        kernel.at(signature[limit].expr),
        tuple(
            task.related(found[0].tensors[limit].span, f"tensor {limit} is added here")
            for task in tasks(program)
            if kernel in task.kernels and (found := [item for item in task.payloads if len(item.tensors) > limit])
        )[:1],
        ops=(kernel.title,),
    )


def _of_task(task: Task) -> Iterator[Diagnostic]:
    """Yield a finding on the first argument of a payload that is beyond a limit."""
    contract = task.program.contract
    titles = tuple(dict.fromkeys(kernel.title for kernel in task.kernels))
    for payload in task.payloads:
        for what, limit, slots in (
            ("tensors", contract.core_tensors, payload.tensors),
            ("scalars", contract.core_scalars, _scalars(payload)),
        ):
            over = _over(slots, limit)
            if over is not None:
                yield Diagnostic(
                    f"the payload has more than {limit} {what} from here on, and the runtime rejects the task "
                    f"({contract.limits_source}): split it",
                    task.at(over.span),
                    (task.related(task.submit.span, "submitted here"),),
                    ops=titles,
                )


def _scalars(payload: Payload) -> tuple[Slot, ...]:
    return tuple(slot for slot in payload.slots if slot.kind == "scalar")


def _over(slots: Sequence[Slot], limit: int) -> Slot | None:
    """Return the slot that exceeds a limit; one with an unknown count counts as none."""
    count = 0
    for slot in slots:
        count += max(slot.count, 0)
        if 0 < limit < count:
            return slot
    return None


def _of_orchestration(program: Program) -> Iterator[Diagnostic]:
    part, contract = program.orchestration, program.contract
    slots = part.signature.slots if part is not None and part.signature is not None else None
    if part is not None and slots and _beyond(slots, contract.chip_tensors):
        yield Diagnostic(
            f"the orchestration's `signature` has {len(slots)} entries, and the runtime takes {contract.chip_tensors} "
            f"({contract.limits_source})",
            part.at(slots[contract.chip_tensors].expr),
        )
    entry = entry_of(program)
    room = contract.chip_tensors + contract.chip_scalars
    if part is not None and entry is not None and contract.chip_tensors and contract.chip_scalars:
        at = expected_at(program, part, entry.expected) if entry.expected > room else None
        if at is not None:
            yield Diagnostic(
                f"`expected_arg_count` is {entry.expected}, and the runtime passes {contract.chip_tensors} tensors and "
                f"{contract.chip_scalars} scalars at most ({contract.limits_source})",
                at,
            )


def expected_at(program: Program, part: OrchestrationPart, count: int) -> Place | None:
    """Return the place of the number."""
    source = program.project.source(part.source) if part.source is not None else None
    match = re.search(rf"\bexpected_arg_count\s*=\s*({count})\b", source.text) if source is not None else None
    return Place(part.source or "", Span(*match.span(1))) if match is not None else None

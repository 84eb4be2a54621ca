"""Kernels' signatures with more tensors than any of their tasks."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.pypto.claims import is_shifted, readings
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.task_matching import WORDS, Task, tasks


@rule("PTO120", "signature-wide", severity="info", needs=(CPP,))
def signature_wide(program: Program) -> Iterator[Diagnostic]:
    """A signature with more tensors than the orchestration passes in any task of the kernel.

    Since simpler `b1e4bd239` a payload may be shorter than the signature of its kernels, whose further entries are ignored.
    If that is so for all tasks, the signature is outdated, or the orchestration no longer adds a tensor that the kernel
    expects; see `kernel-argument`, which reports that where the kernel's code shows it. So this is an info.

    Nothing is reported if a task of the kernel, or its payload, is not known. Other runtimes do not accept such signatures:
    see `signature-short` and `arg-index-list`.

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, p);
    ```

    Good, one of the tasks passes all of them:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, p);
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```
    """
    if program.contract.rule != "widest" or program.orchestration is None:
        return
    entry = program.orchestration.entry
    if entry is None or entry.unresolved or program.listed:
        return
    judged = {id(reading.task.submit) for reading in readings(program)}
    every = list(tasks(program))
    for kernel in program.kernels:
        own = [task for task in every if any(item.value == kernel.func_id for item in task.submit.kernels)]
        known = (
            own
            and all(id(task.submit) in judged for task in own)
            and all(item.value is not None for task in every for item in task.submit.kernels)
        )
        declared = kernel.signature.tensors if kernel.signature is not None else ()
        most = max(own, key=lambda task: task.widest, default=None)
        if known and most is not None and len(declared) > most.widest and not is_shifted(program, kernel):
            yield _wide(kernel, len(declared), most)


def _wide(kernel: Kernel, declared: int, task: Task) -> Diagnostic:
    payload = max(task.payloads, key=lambda item: len(item.tensors))
    kinds = ", ".join(WORDS[slot.kind] for slot in payload.tensors)
    return Diagnostic(
        f"{kernel.title} declares {declared} tensors, and no task of it has more than {task.widest}, [{kinds}]",
        kernel.at(kernel.signature.expr if kernel.signature is not None else kernel.expr),
        (task.related(task.submit.span, "the task with the most tensors"),),
        ops=(kernel.title,),
        severity=Severity.INFO,
    )

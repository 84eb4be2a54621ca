"""The parallel list that names the tensor of each signature entry, for the runtimes that required one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import joined
from opschema_rules.pypto.claims import entries
from opschema_rules.pypto.model import Direction, Kernel, Program
from opschema_rules.pypto.task_matching import Task, tasks


@rule("PTO112", "arg-index-list", needs=(CPP,))
def arg_index_list(program: Program) -> Iterator[Diagnostic]:
    """An `arg_index` that does not match its signature.

    From simpler `b972b288e` until `b1e4bd239` each kernel with a `signature` had a parallel `arg_index`: the tensor of the
    payload that each entry is for. A kernel without it, or with one of another length, is rejected when the program is
    loaded; a number for which no task of the kernel has a tensor is ignored by the dump, which is a warning. Other runtimes
    have no such list, so nothing is checked for them. Neither is a list that code of the file may change, or one that its functions
    make.

    Bad:

    ```toml opschema.toml
    [pypto]
    signatures = "arg-index"
    ```

    Bad:

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "source": "add.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.IN, D.OUT],
            "arg_index": [0, 1],
        },
    ]
    ```

    ```toml opschema.toml
    [pypto]
    signatures = "arg-index"
    ```

    Good:

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "source": "add.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.IN, D.OUT],
            "arg_index": [0, 1, 2],
        },
    ]
    ```

    ```toml opschema.toml
    [pypto]
    signatures = "arg-index"
    ```
    """
    if program.contract.rule != "arg_index" or not program.contract.dumps:
        return
    every = list(tasks(program))
    for kernel in program.kernels:
        if kernel.signature is not None and kernel.signature.slots is not None:
            yield from _of_kernel(kernel, [task for task in every if kernel in task.kernels])


def _of_kernel(kernel: Kernel, own: list[Task]) -> Iterator[Diagnostic]:
    slots, count = kernel.indexes if kernel.fixed else None, len(entries(kernel))
    if "arg_index" not in kernel.fields:
        if count and kernel.signature is not None:
            yield Diagnostic(
                f"{kernel.title} has a `signature` and no `arg_index`, which the runtime requires: list the tensor of each entry"
                f"{kernel.program.contract.told}",
                kernel.at(kernel.signature.expr),
                ops=(kernel.title,),
            )
        return
    expr = kernel.fields["arg_index"][1]
    if slots is not None and len(slots) != count:
        yield Diagnostic(
            f"the `arg_index` of {kernel.title} has {len(slots)} numbers, and its `signature` {count} entries: the "
            f"runtime rejects it{kernel.program.contract.told}",
            kernel.at(expr),
            ops=(kernel.title,),
        )
    elif slots is not None:
        yield from _beyond(kernel, slots, own)


def _beyond(kernel: Kernel, slots: Sequence[int], own: list[Task]) -> Iterator[Diagnostic]:
    """Yield a finding on numbers for which none of a kernel's tasks has a tensor."""
    if not own or not all(task.whole and task.payloads for task in own):
        return
    most = max(task.widest for task in own)
    pairs = enumerate(zip(slots, entries(kernel), strict=True))
    wrong = {
        at: slot for at, (slot, entry) in pairs if entry.direction is not Direction.SCALAR and not 0 <= slot < most
    }
    if wrong:
        expr, first = kernel.fields["arg_index"][1], min(wrong)
        written = expr.items[first] if expr.kind in ("list", "tuple") and len(expr.items) == len(slots) else expr
        yield Diagnostic(
            f"{kernel.title} declares {_tensors([*wrong.values()])}, and no task of it has more than {most}",
            kernel.at(written),
            ops=(kernel.title,),
            severity=Severity.WARNING,
        )


def _tensors(numbers: Sequence[int]) -> str:
    return f"tensor{'s' if len(numbers) > 1 else ''} {joined([*map(str, numbers)])}"

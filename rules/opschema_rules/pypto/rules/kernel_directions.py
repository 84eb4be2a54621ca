"""The directions in which tasks add their tensors, against what the C++ code of their kernels does to them."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic
from opschema_cli.lint.rule import rule
from opschema_rules.pypto.includes import includes_others
from opschema_rules.pypto.kernel_code import access, arguments_of
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.task_matching import Task, tasks


@rule("PTO117", "kernel-direction", severity="warning", needs=(CPP,))
def kernel_direction(program: Program) -> Iterator[Diagnostic]:
    """A kernel that writes a tensor which its task adds as an input, or does not write one that it adds as an output.

    The runtime orders tasks by the directions in which the orchestration adds their tensors. It does not let a task wait for
    one that writes an `add_input` tensor, so that it may read old data. An `add_output` tensor waits for no task that writes it
    before: a kernel that only reads it reads old data, too, and if no kernel of the task writes it, its memory stays undefined.
    Signatures do not show this, if they repeat the same mistake.

    The C++ of all kernels of the task is followed from `args[i]` through casts, pointers and helpers to what loads, stores,
    reads or writes. Nothing is reported where this cannot be followed, where one variable may be several arguments, where only
    code under an `#if` that does not enclose the entry does it, or for `add_inout` and `add_no_dep`, which also serve to order
    tasks. Memory through which the cores of a task or several ranks
    exchange data (the buffer of a `TPipe`, what `TPUT` and `TNOTIFY` write on another rank) does not show a direction. An
    output that the runtime allocates and no kernel takes is valid: it only orders tasks. An output that a kernel reads and writes
    is never reported, as the order of these is not known. Nothing is said of outputs that are not written if the task passes
    scalars, among which the address may be, or if a kernel includes code of its own tree. The memory of kernels that pypto's
    compiler wrote is not followed here.

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref(), orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *x = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        __gm__ ChipTensor *y = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
        GlobalTensor<float, Shape, Stride> from(reinterpret_cast<__gm__ float *>(x->buffer.addr));
        GlobalTensor<float, Shape, Stride> to(reinterpret_cast<__gm__ float *>(y->buffer.addr));
        TLOAD(tile, from);
        TSTORE(to, tile);
    }
    ```

    Good:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *x = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        __gm__ ChipTensor *y = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
        GlobalTensor<float, Shape, Stride> from(reinterpret_cast<__gm__ float *>(x->buffer.addr));
        GlobalTensor<float, Shape, Stride> to(reinterpret_cast<__gm__ float *>(y->buffer.addr));
        TLOAD(tile, from);
        TSTORE(to, tile);
    }
    ```
    """
    seen: set[tuple[tuple[Kernel, ...], int, str]] = set()
    for task in tasks(program):
        codes = [arguments_of(kernel) for kernel in task.kernels]
        if not task.whole or not task.payloads or any(code is None or code.brief for code in codes):
            continue
        kernels = tuple(dict.fromkeys(task.kernels))
        for at in range(task.widest):
            kinds = {slot.kind for slot in task.slots(at)}
            key = (kernels, at, min(kinds))
            if len(kinds) == 1 and min(kinds) in ("in", "out") and key not in seen:
                seen.add(key)
                yield from _contradicted(task, kernels, at, min(kinds))


def _contradicted(task: Task, kernels: tuple[Kernel, ...], at: int, kind: str) -> Iterator[Diagnostic]:
    shown, place = access(kernels, [at]), task.at(task.slots(at)[0].span)
    titles, ops = " and ".join(kernel.title for kernel in kernels), tuple(kernel.title for kernel in kernels)
    several = len(kernels) > 1
    if shown.unresolved:
        return
    if kind == "in" and shown.written is not None:
        verb, word = "write" if several else "writes", "`add_inout`" if shown.read is not None else "`add_output`"
        message = (
            f"tensor {at} of the task is added as `IN`, and {titles} {verb} it; no task waits for that: use {word}"
        )
        yield Diagnostic(message, place, (shown.written,), ops=ops)
    elif kind != "out" or shown.written is not None or shown.exchanged or _may_write_unseen(task, kernels):
        return
    elif shown.read is not None:
        verb = "read" if several else "reads"
        message = f"tensor {at} of the task is added as `OUT`, and {titles} only {verb} it: use `add_input`"
        yield Diagnostic(message, place, (shown.read,), ops=ops)
    elif _is_taken(task, at):
        message = (
            f"tensor {at} of the task is added as `OUT`, and no code of {titles} writes it: its memory stays undefined"
        )
        yield Diagnostic(message, place, ops=ops)


def _may_write_unseen(task: Task, kernels: tuple[Kernel, ...]) -> bool:
    """Whether kernels may write tensors through unfollowed code: an address among the scalars, a macro of another file."""
    passes = any(slot.kind == "scalar" for payload in task.payloads for slot in payload.slots)
    peek = task.program.project.workspace.peek
    sources = [kernel.source for kernel in kernels if kernel.source is not None]
    return passes or any(includes_others(peek(path).decode("utf-8", "replace")) for path in sources)


def _is_taken(task: Task, at: int) -> bool:
    """Whether a tensor is more than a token that orders tasks: the orchestration's own, or one that a kernel takes; not known
    for kernels that take arguments which the task does not pass.
    """
    codes = [code for kernel in task.kernels if (code := arguments_of(kernel)) is not None]
    used = {use.index for code in codes for use in code.uses}
    passed = max(len(payload.slots) for payload in task.payloads)
    return max(used, default=0) < passed and (at in used or any(slot.argument >= 0 for slot in task.slots(at)))

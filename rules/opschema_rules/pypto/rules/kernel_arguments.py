"""The arguments that a kernel's C++ code uses, against those that its tasks pass."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_rules.pypto.facts import Payload, Slot
from opschema_rules.pypto.kernel_code import arguments_of
from opschema_rules.pypto.kernel_facts import ArgumentUse, KernelCode
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.task_matching import WORDS, Task, tasks


@rule("PTO116", "kernel-argument", needs=(CPP,))
def kernel_argument(program: Program) -> Iterator[Diagnostic]:
    """A kernel that uses an argument which its task does not pass, or passes as something else.

    A kernel gets the tensors of its task first, as pointers to their descriptions, and then the scalars: with three tensors,
    `args[3]` is the first scalar. Nothing checks that. Beyond the last argument a kernel reads what an earlier task left
    there; a scalar that is used as a pointer to a tensor, or a tensor that is used as a number, is arbitrary memory or a
    wrong number.

    The C++ of a kernel is followed through its helpers; nothing is reported where an index is not known, where the task's
    payload is not, or where some path to the task passes the argument. Uses in a branch do not count, nor uses under an `#if`
    that does not enclose the entry.

    Bad:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        __gm__ ChipTensor *c = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
        float scale = static_cast<float>(args[3]);
        use(a, c, scale);
    }
    ```

    Bad, the second tensor is used as a number:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        int n = static_cast<int>(args[1]);
        use(a, n);
    }
    ```

    Good:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        __gm__ ChipTensor *b = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
        __gm__ ChipTensor *c = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
        use(a, b, c);
    }
    ```
    """
    found: set[tuple[str, int]] = set()
    for task in tasks(program):
        for kernel in dict.fromkeys(task.kernels if task.payloads else ()):
            code = arguments_of(kernel)
            for use in _first_uses(code) if code is not None else ():
                wrong = _wrong(task, use)
                if wrong and (kernel.source or "", use.index) not in found:
                    found.add((kernel.source or "", use.index))
                    place = Place(kernel.source or "", use.span)
                    related = task.related(task.submit.span, _passes(task.payloads[0]))
                    yield Diagnostic(f"{kernel.title} {wrong}", place, (related,), ops=(kernel.title,))


def _first_uses(code: KernelCode) -> list[ArgumentUse]:
    """Return the first use of each kind of each argument, without conditional ones."""
    found: dict[tuple[int, str], ArgumentUse] = {}
    for use in sorted((item for item in code.uses if not item.conditional), key=lambda item: item.span):
        found.setdefault((use.index, use.kind), use)
    kinds = {index: {kind for at, kind in found if at == index} for index, _ in found}
    return [use for (index, kind), use in found.items() if kind != "other" or kinds[index] == {"other"}]


def _wrong(task: Task, use: ArgumentUse) -> str:
    """Return what is wrong with a use on every path to a task; empty if nothing is."""
    contract = task.program.contract
    if use.index >= contract.core_tensors + contract.core_scalars > 0:
        return ""  # the runtime's own arguments, after all others
    counts = [(len(payload.tensors), _scalars(payload)) for payload in task.payloads]
    if all(use.index >= tensors + scalars for tensors, scalars in counts):
        passed = _count(max(sum(pair) for pair in counts))
        return f"uses `args[{use.index}]`, and this task passes {passed}: it reads the value that an earlier task left"
    if use.kind == "tensor" and all(use.index >= tensors for tensors, _ in counts):
        return f"takes `args[{use.index}]` as a tensor, and this task passes a scalar there"
    if use.kind == "number" and all(use.index < tensors for tensors, _ in counts):
        return f"takes `args[{use.index}]` as a number, and this task passes a tensor there"
    return ""


def _scalars(payload: Payload) -> int:
    """Return the number of scalars; a very large number if it is not known."""
    counts = [slot.count for slot in payload.slots if slot.kind == "scalar"]
    return 1_000_000 if any(count < 0 for count in counts) else sum(counts)


def _count(number: int) -> str:
    return "no arguments" if not number else "one argument" if number == 1 else f"{number} arguments"


def _passes(payload: Payload) -> str:
    kinds = ", ".join(WORDS[slot.kind] for slot in payload.tensors)
    scalars = _scalars(payload)
    return f"submitted here with the tensors [{kinds}]" + (f" and {scalars} scalars" if scalars else "")


@rule("PTO118", "argument-unused", severity="info", needs=(CPP,))
def argument_unused(program: Program) -> Iterator[Diagnostic]:
    """An argument that a task passes and none of its kernels uses.

    It takes one of the few slots of the task, and is often left from an earlier version of the kernel, whose other arguments
    may have moved as well. The runtime allows it, so this is an info. A tensor may be added only to order tasks; it is
    reported if it is an input of the orchestration that no task writes.

    Nothing is reported for a kernel that uses no argument at all, as in tests of the runtime, nor where a kernel or the
    payload cannot be followed.

    Bad, `b` is not used:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        __gm__ ChipTensor *c = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
        use(a, c);
    }
    ```

    Good:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        for (int i = 0; i < 3; i++) {
            use(reinterpret_cast<__gm__ ChipTensor *>(args[i]));
        }
    }
    ```
    """
    found: dict[tuple[tuple[Kernel, ...], int], tuple[Task, Slot]] = {}
    used: set[tuple[tuple[Kernel, ...], int]] = set()
    for task in tasks(program):
        codes = [arguments_of(kernel) for kernel in task.kernels]
        if not task.whole or any(code is None or code.open or not code.uses for code in codes):
            continue
        kernels = tuple(dict.fromkeys(task.kernels))
        taken = {use.index for code in codes if code is not None for use in code.uses}
        for payload in task.payloads:
            for index, slot in enumerate(_flat(payload) if _fits(program, payload) else ()):
                if index in taken or not _is_spare(task, slot):
                    used.add((kernels, index))
                else:
                    found.setdefault((kernels, index), (task, slot))
    spare: dict[tuple[Kernel, ...], list[tuple[int, Task, Slot]]] = {}
    for (kernels, index), (task, slot) in found.items():
        if (kernels, index) not in used:
            spare.setdefault(kernels, []).append((index, task, slot))
    for kernels, items in spare.items():
        yield _unused(kernels, sorted(items, key=lambda item: item[0]))


def _unused(kernels: tuple[Kernel, ...], items: list[tuple[int, Task, Slot]]) -> Diagnostic:
    """Return one finding for all arguments that no code of some kernels uses."""
    index, task, slot = items[0]
    titles = " and ".join(kernel.title for kernel in kernels)
    what = "a scalar" if slot.kind == "scalar" else f"a tensor (`{WORDS[slot.kind]}`)"
    message = f"`args[{index}]` of {titles} is {what} that no code uses: drop it, or use it"
    if len(items) > 1:
        message = f"{len(items)} arguments of {titles} are not used by any code: {quoted(f'args[{at}]' for at, _, _ in items)}"
    return Diagnostic(
        message, task.at(slot.span), ops=tuple(kernel.title for kernel in kernels), severity=Severity.INFO
    )


def _fits(program: Program, payload: Payload) -> bool:
    """Whether the runtime accepts a payload; one that is too long is reported by another rule."""
    contract = program.contract
    return len(payload.tensors) <= (contract.core_tensors or 1_000) and _scalars(payload) <= (
        contract.core_scalars or 1_000
    )


def _is_spare(task: Task, slot: Slot) -> bool:
    """Whether an unused argument serves no other purpose: a scalar, or an input that no task writes."""
    if slot.kind == "scalar":
        return True
    entry = task.orchestration.entry
    if slot.kind != "in" or slot.argument < 0 or entry is None or entry.unresolved:
        return False
    payloads = [payload for submit in entry.submits for payload in submit.payloads]
    written = any(
        item.argument == slot.argument and item.kind != "in" for payload in payloads for item in payload.tensors
    )
    return not written and not any(payload.unresolved for payload in payloads)


def _flat(payload: Payload) -> list[Slot]:
    """Return the slot of each argument, as far as their numbers are known."""
    found = list(payload.tensors)
    for slot in payload.slots:
        if slot.kind == "scalar":
            if slot.count < 0:
                break
            found += [slot] * slot.count
    return found

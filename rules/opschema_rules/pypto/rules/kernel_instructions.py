"""Instructions of a kernel without a counterpart or with the wrong operands."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_rules.pypto.kernel_code import arguments_of
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.task_matching import tasks


@rule("PTO132", "kernel-event")
def kernel_event(program: Program) -> Iterator[Diagnostic]:
    """A `wait_flag()` for an event that nothing sets, or a `set_flag()` that nothing waits for.

    The pipes of a core run in parallel. `set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)` sets an event when the first pipe gets there, and
    `wait_flag()` with the same arguments makes the second pipe wait for the event and clears it. A wait without a set never ends,
    so the core hangs. A set without a wait is a warning: the second pipe does not wait, and the event stays set.
    A simulator notices neither.

    The rule reports an event that a file only sets or only waits for, and one that the code sets more often, or less often, than it
    waits for it on every path. If that differs between the paths through branches and loops, nothing is reported. Files are not
    checked if they compute an event, name one in a macro, or include other code of the program. Kernels written by pypto's compiler
    are checked too, since they are sometimes edited by hand.

    Bad:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        TLOAD(tile, from);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
        TADD(tile, tile, tile);
    }
    ```

    Bad, the loop ends without the last wait:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        for (int i = 0; i < 4; i++) {
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
            TLOAD(tile, from);
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        }
    }
    ```

    Good, an event is set before the loop and once in each turn:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        for (int i = 0; i < 4; i++) {
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
            TLOAD(tile, from);
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            TADD(tile, tile, tile);
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        }
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    }
    ```
    """
    seen: set[str] = set()
    for kernel in program.kernels:
        code = arguments_of(kernel) if kernel.source not in seen else None
        seen.add(kernel.source or "")
        for item in code.events if code is not None else ():
            one, other = ("waits for", "set") if item.waits else ("sets", "wait")
            times = f"only {count(item.have, f'`{other}_flag()`')}" if item.have else f"no `{other}_flag()`"
            effect = "so that the core hangs" if item.waits else "so that the event stays set"
            yield Diagnostic(
                f"{kernel.title} {one} `{item.key}` here, and has {times} for it, {effect}",
                Place(kernel.source or "", item.span),
                ops=(kernel.title,),
                severity=Severity.ERROR if item.waits else Severity.WARNING,
            )


@rule("PTO133", "kernel-operand")
def kernel_operand(program: Program) -> Iterator[Diagnostic]:
    """A load or store of a kernel whose operands cannot be right.

    * `TLOAD()` gets a tile and then a tensor of the global memory, `TSTORE()` the tensor and then the tile. The kernel does not
      compile with these in another order, which is noticed where the tool chain is.
    * Of two loads into one tile, with nothing between them, the first is lost: often the second should be into another tile. That
      is a warning.
    * A `GlobalTensor<float, ...>` is made of a pointer to `float`; one to other elements does not compile.
    * A `GlobalTensor` that nothing loads or stores is often one whose load takes another tensor. That is a warning.

    Variables count that are declared with a type alias (`using Global = GlobalTensor<...>`) of the file, and whose name stands for
    nothing else in it. Of kernels that pypto's compiler wrote, exchanged operands are reported, and an argument that is unpacked
    twice while another one is not.

    Bad:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        using Global = GlobalTensor<float, Shape, Stride>;
        using Local = Tile<TileType::Vec, float, 16, 16>;
        Global from(source(args[0]));
        Local tile(16, 16);
        TLOAD(from, tile);
    }
    ```

    Bad:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        using Global = GlobalTensor<float, Shape, Stride>;
        Global one(source(args[0]));
        Global other(source(args[1]));
        TLOAD(left, one);
        TLOAD(right, one);
    }
    ```

    Good, a tile may be loaded again once it was used:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        using Global = GlobalTensor<float, Shape, Stride>;
        using Local = Tile<TileType::Vec, float, 16, 16>;
        Global one(source(args[0]));
        Global other(source(args[1]));
        Local tile(16, 16);
        TLOAD(tile, one);
        TADD(sum, sum, tile);
        TLOAD(tile, other);
        TADD(sum, sum, tile);
    }
    ```
    """
    seen: set[str] = set()
    for kernel in program.kernels:
        code = arguments_of(kernel) if kernel.source not in seen else None
        seen.add(kernel.source or "")
        for item in code.operands if code is not None else ():
            if item.kind == "repeated" and not _passes(program, kernel, item.index):
                continue
            message = {
                "exchanged": f"the operands of {kernel.title} are exchanged: write `{item.name}`",
                "overwritten": f"{kernel.title} loads into `{item.name}` twice, so that the first load is lost",
                "repeated": f"{kernel.title} unpacks `{item.name}` a second time, and not `args[{item.index}]`, which its task"
                " passes",
                "element": f"in {kernel.title}, {item.name}: it does not compile",
                "unused": f"{kernel.title} does not use `{item.name}`; is another tensor taken for it?",
            }[item.kind]
            severity = Severity.ERROR if item.kind in ("exchanged", "element", "repeated") else Severity.WARNING
            yield Diagnostic(message, Place(kernel.source or "", item.span), ops=(kernel.title,), severity=severity)


def _passes(program: Program, kernel: Kernel, index: int) -> bool:
    """Whether each task of a kernel is known to pass an argument."""
    own = [task for task in tasks(program) if kernel in task.kernels]
    return bool(own) and all(task.payloads and all(len(item.slots) > index for item in task.payloads) for task in own)

"""Scalars that precede tensors, and scalars of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.pypto import proofs
from opschema_rules.pypto.claims import misplaced
from opschema_rules.pypto.facts import Payload, ScalarReading, Slot
from opschema_rules.pypto.kernel_code import arguments_of
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.rules.declaring import declaring
from opschema_rules.pypto.runtime_api import interface_of
from opschema_rules.pypto.scene_scalars import type_of_passed
from opschema_rules.pypto.scenes import Argument
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
                "a scalar precedes a tensor in the orchestration's `signature`, and shifts all directions after it: put "
                "it last, or leave it out",
                part.at(scalar.expr),
            )


def _in_kernel(program: Program, kernel: Kernel) -> Iterator[Diagnostic]:
    for scalar in misplaced(kernel.signature)[:1]:
        yield Diagnostic(
            f"a scalar precedes a tensor in the signature of {kernel.title}, and shifts all directions after it: put "
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


@rule("PTO135", "scalar-type", needs=(CPP,))
def scalar_type(program: Program) -> Iterator[Diagnostic]:
    """A scalar that is passed as one type and read as another.

    `add_scalar()` keeps the bits of what it gets in 64 bits (`to_u64()`), and `from_u64<float>(args[2])` takes a `float` from them.
    Nothing compares the types: the bits of `1.0`, which is a `double`, are zero as a `float`, those of `1.0f` are the integer
    1065353216, which is also what `static_cast<float>(args[2])` makes of them, and those of `3` are nearly zero as a `float`.

    The types of literals, of variables that are declared as `float` or `double` and of casts are known, and those of the scalars
    that a scene test on one chip passes: `ctypes.c_float(x)`, small integers. A scalar that the orchestration adds as it gets it is
    followed to the kernel. What a kernel or orchestration reads counts if it does so in any case, and as one type only; an integer
    if it is kept in a variable that is used as a number (`n * 16`, `i < n`), and whose bits nothing takes for a `float`. Zero has
    the same bits in all types. Nothing is reported in a tree whose runtime converts scalars to integers, as older ones do.

    Bad:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        float scale = from_u64<float>(static_cast<uint64_t>(args[2]));
        use(a, args[1], scale);
    }
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_output(orch_args.tensor(2).ref());
    p.add_scalar(0.5);
    rt_submit_aiv_task(0, p);
    ```

    Good:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        float scale = from_u64<float>(static_cast<uint64_t>(args[2]));
        use(a, args[1], scale);
    }
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_output(orch_args.tensor(2).ref());
    p.add_scalar(0.5f);
    rt_submit_aiv_task(0, p);
    ```

    Good, a kernel may convert an integer:

    ```cpp program/kernels/aiv/add.cpp
    extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
        __gm__ ChipTensor *a = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
        float count = static_cast<float>(args[2]);
        use(a, args[1], count);
    }
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_output(orch_args.tensor(2).ref());
    p.add_scalar(3);
    rt_submit_aiv_task(0, p);
    ```
    """
    if interface_of(program.project).converts_scalars:
        return
    passed = _passed(program)
    yield from _read_by_orchestration(program, passed)
    seen: set[tuple[str, int, int]] = set()
    for task in tasks(program):
        for kernel in dict.fromkeys(task.kernels if task.payloads else ()):
            code = arguments_of(kernel)
            for read in code.scalars if code is not None else ():
                slot = _slot_at(task, read.index)
                key = (kernel.source or "", read.index, slot.span.start) if slot is not None else None
                if slot is None or key is None or key in seen:
                    continue
                seen.add(key)
                related = Related(Place(kernel.source or "", read.span), "the kernel reads it here")
                what = f"`args[{read.index}]` of {kernel.title}"
                if slot.type in _TYPES and _differs(slot.type, read.reading):
                    message = _message(what, slot.type, "the kernel", read.reading)
                    yield Diagnostic(message, task.at(slot.span), (related,), ops=(kernel.title,))
                argument = passed.get(slot.type)
                if argument is not None and _differs(argument[0], read.reading):
                    message = _message(f"scalar `{argument[1].name}`", argument[0], kernel.title, read.reading)
                    place = Place(program.file.path, argument[1].expr.span)
                    yield Diagnostic(
                        message, place, (related, task.related(slot.span, "added here")), ops=(kernel.title,)
                    )


_TYPES = {"float": "a `float`", "double": "a `double`", "integer": "an integer"}
_READINGS: dict[ScalarReading, str] = {
    "float": "takes its bits for a `float`",
    "double": "takes its bits for a `double`",
    "integer": "takes it for an integer",
    "converted": "converts it like an integer",
}


def _passed(program: Program) -> dict[str, tuple[str, Argument]]:
    """Return the scalars of a scene test with known types, each with its type, by the type of a slot that passes it on."""
    scene, cls = program.scene, program.owner
    if scene is None or cls is None or program.listed:
        return {}
    found = enumerate(scene.of("scalar"))
    return {f"scalar {at}": (of, item) for at, item in found if (of := type_of_passed(program.file, cls, item))}


def _read_by_orchestration(program: Program, passed: dict[str, tuple[str, Argument]]) -> Iterator[Diagnostic]:
    part = program.orchestration
    for read in part.entry.scalars if passed and part is not None and part.entry is not None else ():
        of, argument = passed.get(f"scalar {read.index}", ("", None))
        if argument is not None and part is not None and _differs(of, read.reading):
            related = Related(Place(part.source or "", read.span), "the orchestration reads it here")
            message = _message(f"scalar `{argument.name}`", of, "the orchestration", read.reading)
            yield Diagnostic(message, Place(program.file.path, argument.expr.span), (related,))


def _slot_at(task: Task, index: int) -> Slot | None:
    """Return the scalar that a task passes as an argument, if it is the same on all paths."""
    found = {_scalar_at(payload, index) for payload in task.payloads}
    return found.pop() if len(found) == 1 else None


def _scalar_at(payload: Payload, index: int) -> Slot | None:
    left = index - len(payload.tensors)
    for slot in payload.slots if left >= 0 else ():
        if slot.kind == "scalar":
            if slot.count != 1 or not left:
                return slot if slot.count == 1 else None
            left -= 1
    return None


def _differs(given: str, reading: ScalarReading) -> bool:
    return reading in ("float", "double") if given == "integer" else reading != given


def _message(what: str, given: str, reader: str, reading: ScalarReading) -> str:
    return f"{what} is {_TYPES[given]}, and {reader} {_READINGS[reading]}: it gets another number"

"""Kernels' signatures that omit tensors with which the orchestration submits the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_rules.pypto import proofs
from opschema_rules.pypto.claims import Claim, Reading, is_shifted, readings
from opschema_rules.pypto.facts import Slot
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.rules.declaring import declaring
from opschema_rules.pypto.task_matching import WORDS, fits


@rule("PTO101", "signature-missing", severity="warning", fixable="safe", proof=proofs.RECORDED, needs=(CPP,))
def signature_missing(program: Program) -> Iterator[Diagnostic]:
    """A kernel that is submitted with tensors, but declares none.

    The runtime's dump of arguments finds a task's tensors by the signatures of its kernels. If no kernel of a task declares
    a signature, none of its tensors are dumped, and only a line in the log mentions it. Declare the direction of each
    tensor, in the order in which the orchestration adds them, without the scalars. One kernel with a signature is enough
    for a task. Trees whose runtime cannot dump arguments are not checked.

    The fix writes the list if every task of the kernel is known and all tasks agree. A tensor without dependencies is
    written as `INOUT`, as the compiler does, and an `arg_index` where the runtime asks for one.

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": str(_ROOT_DIR / "kernels" / "aiv" / "add.cpp"), "core_type": "aiv"},
    ]
    ```

    Bad:

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "source": str(_ROOT_DIR / "kernels" / "aiv" / "add.cpp"),
            "core_type": "aiv",
            "signature": [],
        },
    ]
    ```

    Good, a task without tensors, and one whose other kernel declares them all:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "wait.cpp", "core_type": "aiv"},
        {"func_id": 1, "source": "cube.cpp", "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
        {"func_id": 2, "source": "vector.cpp", "core_type": "aiv"},
    ]
    ```

    ```cpp
    CoreTaskArgs nothing;
    nothing.add_scalar(1);
    rt_submit_aiv_task(0, nothing);
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    MixedKernels mixed = {1, 2, 2};
    rt_submit_task(mixed, p);
    ```
    """
    found: dict[Kernel, Reading] = {}
    for reading in readings(program):
        if reading.bare and reading.longest.tensors:
            for kernel in _mute(reading):
                known = found.setdefault(kernel, reading)
                found[kernel] = max(known, reading, key=lambda item: len(item.longest.tensors))
    for kernel, reading in found.items():
        tensors = reading.longest.tensors
        yield Diagnostic(
            f"{kernel.title} {_lack(kernel)}, so that none of its tensors {_listed(tensors)} are dumped: declare them",
            _missing_at(kernel),
            (reading.task.related(reading.task.submit.span, "submitted here"),),
            declaring(program, kernel),
            (kernel.title,),
        )


def _mute(reading: Reading) -> tuple[Kernel, ...]:
    """Return the kernels of a task without any signature that should have one; only one of them if their entries add up."""
    if reading.task.program.contract.rule != "sum":
        return reading.kernels
    counts = Counter(map(id, reading.kernels))
    once = [kernel for kernel in reading.kernels if counts[id(kernel)] == 1]
    return tuple(once or reading.kernels)[:1]


def _lack(kernel: Kernel) -> str:
    return "has no `signature`" if kernel.signature is None else "has an empty `signature`"


def _missing_at(kernel: Kernel) -> Place:
    if kernel.signature is not None:
        return kernel.at(kernel.signature.expr)
    key, value = kernel.fields["func_id"]
    return kernel.at(Span(key.start, value.end))


def _listed(slots: Sequence[Slot]) -> str:
    """``[IN, IN, OUT]``, as messages show a payload."""
    return f"[{', '.join(WORDS[slot.kind] for slot in slots)}]"


@rule("PTO102", "signature-short", severity="warning", fixable="safe", proof=proofs.RECORDED, needs=(CPP,))
def signature_short(program: Program) -> Iterator[Diagnostic]:
    """Kernels whose signatures do not cover the tensors that they are submitted with.

    Entry *i* of a signature is for tensor *i* of the payload. Of the kernels of a task, the longest list counts for all:
    tensors beyond it are not dumped. A list that is longer than a payload is valid, so that a kernel may be submitted with
    fewer tensors elsewhere.

    Older runtimes read signatures in other ways, which this rule follows. Before simpler `b1e4bd239`, a parallel
    `arg_index` named the tensor of each entry, and those that no kernel named were not dumped. Before `b972b288e`, the
    signatures of a task's kernels together had to have exactly as many tensors as the payload, or nothing of the task was
    dumped.

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.OUT]},
    ]
    ```

    Bad, the longer branch counts:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    if (masked) {
        p.add_input(orch_args.tensor(0).ref());
    }
    rt_submit_aiv_task(0, p);
    ```

    Good, the longer of the two counts, and a prefix of it is valid:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "cube.cpp", "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
        {"func_id": 1, "source": "vector.cpp", "core_type": "aiv", "signature": [D.IN]},
    ]
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    MixedKernels mixed = {0, 1, 1};
    rt_submit_task(mixed, p);
    CoreTaskArgs prefix;
    prefix.add_input(orch_args.tensor(0).ref());
    rt_submit_aic_task(0, prefix);
    ```
    """
    found: dict[Kernel, Reading] = {}
    for reading in readings(program):
        if not reading.bare and not reading.sound and not any(is_shifted(program, item) for item in reading.kernels):
            known = found.setdefault(reading.driver, reading)
            found[reading.driver] = max(known, reading, key=lambda item: len(item.longest.tensors))
    for kernel, reading in found.items():
        if kernel.signature is not None:
            yield Diagnostic(
                _short(kernel, reading),
                kernel.at(kernel.signature.expr),
                (_beside(reading),),
                declaring(program, kernel),
                (kernel.title,),
            )


def _short(kernel: Kernel, reading: Reading) -> str:
    tensors = reading.longest.tensors
    told = reading.task.program.contract.told
    several = len(reading.kernels) > 1
    whose = "the signatures of the task's kernels have" if several else f"the signature of {kernel.title} has"
    count = len(reading.claims) if reading.task.program.contract.rule == "sum" else len(tensors) - len(reading.missing)
    beside = f" (longest: {kernel.title})" if several else ""
    if reading.task.program.contract.rule == "sum":
        return f"{whose} {count} tensors{beside}, and its payload {len(tensors)}, {_listed(tensors)}: none of it is dumped{told}"
    return f"{whose} entries for {count} of the {len(tensors)} tensors{beside} {_listed(tensors)}: the rest are not dumped{told}"


def _beside(reading: Reading) -> Related:
    """Return the first tensor that the list does not match or cover; the submit if entries go beyond the payload."""
    task, tensors = reading.task, reading.longest.tensors
    wrong = [claim.slot for claim in reading.claims if not _fits(claim, tensors)]
    first = min([*wrong, *reading.missing], default=0)
    beyond = task.program.contract.rule == "sum" and len(reading.claims) > len(tensors)
    if beyond or first >= len(tensors):
        return task.related(task.submit.span, "submitted here")
    return task.related(tensors[first].span, f"tensor {first} is added here as {WORDS[tensors[first].kind]}")


def _fits(claim: Claim, tensors: Sequence[Slot]) -> bool:
    return claim.slot >= len(tensors) or fits(claim.entry.direction, tensors[claim.slot])

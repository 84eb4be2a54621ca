"""The directions that an orchestration declares for its own tensors, against what its tasks do to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit
from opschema_rules.pypto import proofs
from opschema_rules.pypto.kernel_code import access, kernels_of
from opschema_rules.pypto.model import Declared, Direction, OrchestrationPart, Program
from opschema_rules.pypto.runtime_sources import keeps_old_memory, takes_tensors
from opschema_rules.pypto.staging import TensorUse, uses_of
from opschema_rules.pypto.task_matching import WORDS


@rule("PTO106", "orch-out-read", severity="warning", fixable="unsafe", proof=proofs.RECORDED, needs=(CPP,))
def orch_out_read(program: Program) -> Iterator[Diagnostic]:
    """A tensor that the orchestration declares `OUT` but reads before anything has written it.

    The runtime copies a tensor to the device if its entry in the orchestration's signature is `IN` or `INOUT`. An `OUT`
    tensor is only allocated there, and contains what was left in that memory: an accumulator then starts with the values of
    an earlier run, and the result is wrong now and then. Runtimes before simpler `affb46123` filled it with zeros, and the
    first ones copied all tensors, so nothing is reported if the tree has one of these. Declare it `INOUT`; or, if the
    kernel writes the tensor before it reads it, add it with `add_output`, where the runtime's `add_output` takes tensors
    (in older ones it takes only a `TensorCreateInfo`).

    `add_inout` is also used to order tasks, so the C++ of the kernels decides, where it can be followed: nothing is reported
    for a tensor that they only write. One that they read and write is reported if the read certainly comes first: a `TLOAD` whose
    tile is stored there again after some arithmetic, or `p[i] += x`, outside of all branches, lambdas and macros. Nothing is
    reported either for an `add_inout` whose kernel passes the tensor to code that is not in its file.

    The first use counts, in the order in which tasks are submitted, and on each branch; views and aliases of a tensor are
    followed. Nothing is reported if the tensor was passed to something that cannot be followed, if it may be written on
    some path to the use, including an earlier iteration of a loop, and if a task in a loop takes it as `add_inout` together
    with scalars, as these may make the kernel write it in the first iteration (`is_first`). An orchestration that is one of
    several `callables` is not checked: other chips may write its tensors.

    Bad:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN, D.OUT],
    }
    ```
    ```cpp
    const ChipTensor &c = orch_args.tensor(2).ref();
    for (int k = 0; k < 4; k++) {
        CoreTaskArgs p;
        p.add_inout(c);
        rt_submit_aiv_task(0, p);
    }
    ```

    Good:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN, D.INOUT],
    }
    ```
    ```cpp
    const ChipTensor &c = orch_args.tensor(2).ref();
    CoreTaskArgs p;
    p.add_inout(c);
    rt_submit_aiv_task(0, p);
    ```

    Bad (one branch reads it, and only the other writes it):

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN, D.OUT],
    }
    ```
    ```cpp
    const ChipTensor &c = orch_args.tensor(2).ref();
    CoreTaskArgs p;
    if (accumulate) {
        p.add_inout(c);
    } else {
        p.add_output(c);
    }
    rt_submit_aiv_task(0, p);
    ```

    Good (the first iteration may write it):

    ```cpp
    const ChipTensor &c = orch_args.tensor(2).ref();
    for (int k = 0; k < 4; k++) {
        CoreTaskArgs p;
        p.add_inout(c);
        p.add_scalar(k == 0);
        rt_submit_aiv_task(0, p);
    }
    ```

    Good (the first task writes it):

    ```cpp
    const ChipTensor &c = orch_args.tensor(2).ref();
    CoreTaskArgs p;
    p.add_output(c);
    rt_submit_aiv_task(0, p);
    CoreTaskArgs q;
    q.add_input(c);
    rt_submit_aiv_task(0, q);
    ```
    """
    for part, index, declared, uses in _declared(program, Direction.OUT):
        reading = [use for use in _read_first(uses) if _may_read(program, use)]
        if reading and keeps_old_memory(program):
            first, *others = reading
            takes = first.effect == "inout" and takes_tensors(program)
            advice = "declare `INOUT`, or add it with `add_output`" if takes else "declare `INOUT`"
            message = (
                f"tensor {index} of the orchestration is declared `OUT`, so that it is not copied to the device, and"
                f" {_who(program, first)} first{'' if first.sure else ', in a branch'}: {advice}"
            )
            reason = "it costs a copy to the device"
            reason += "; if the kernel writes the tensor before it reads it, `add_output` is right" if takes else ""
            yield _finding(part, declared, (first, *others), message, reason)


@rule("PTO107", "orch-in-written", severity="warning", fixable="unsafe", proof=proofs.RECORDED, needs=(CPP,))
def orch_in_written(program: Program) -> Iterator[Diagnostic]:
    """A tensor that the orchestration declares `IN` but writes.

    The runtime copies a tensor back to the host unless its entry in the orchestration's signature is `IN`. Writes to an
    `IN` tensor stay on the device, and the host continues with the old data. Declare it `INOUT`.

    If the same task or a later one reads the tensor, it may be intended as scratch memory, which the host does not need:
    that is only an info. Nothing is reported for a task whose kernels only read the tensor, nor for an `add_inout` whose
    kernel passes it to code that is not in its file. Nothing is reported if the orchestration cannot be followed, or if it
    is one of several `callables`: its tensors may be memory that chips share.

    Bad:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN],
    }
    ```
    ```cpp
    const ChipTensor &x = orch_args.tensor(0).ref();
    const ChipTensor &y = orch_args.tensor(1).ref();
    CoreTaskArgs p;
    p.add_input(x);
    p.add_output(y);
    rt_submit_aiv_task(0, p);
    ```

    Good:

    ```python
    ORCHESTRATION = {
        "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.OUT],
    }
    ```
    ```cpp
    const ChipTensor &x = orch_args.tensor(0).ref();
    const ChipTensor &y = orch_args.tensor(1).ref();
    CoreTaskArgs p;
    p.add_input(x);
    p.add_output(y);
    rt_submit_aiv_task(0, p);
    ```
    """
    for part, index, declared, uses in _declared(program, Direction.IN):
        writing = [use for use in uses if use.effect in ("out", "inout") and _writes(program, use)]
        if writing and all(use.effect != "unknown" for use in uses):
            is_scratch = "inout" in _last(writing) or "in" in _last(uses)
            advice = "declare `INOUT`, unless it is scratch memory" if is_scratch else "declare `OUT` or `INOUT`"
            message = (
                f"tensor {index} of the orchestration is declared `IN`, so that it is not copied back to the host, and"
                f" {_who(program, writing[-1])}: {advice}"
            )
            reason = "the results of the tasks overwrite the host's data"
            severity = Severity.INFO if is_scratch else Severity.WARNING
            yield _finding(part, declared, writing[-1:], message, reason, severity)


def _declared(
    program: Program, direction: Direction
) -> Iterator[tuple[OrchestrationPart, int, Declared, list[TensorUse]]]:
    """Yield the orchestration's used tensors of one direction, if all of its actions are known."""
    part = program.orchestration
    entry = part.entry if part is not None else None
    if (
        program.listed
        or part is None
        or entry is None
        or entry.unresolved
        or part.signature is None
        or part.source is None
    ):
        return
    slots = part.signature.slots or ()
    if any(slot.direction is Direction.SCALAR for slot in slots):
        return
    found = uses_of(entry) if any(slot.direction is direction for slot in slots) else {}
    for index, slot in enumerate(slots):
        uses = found.get(index, []) if slot.direction is direction else []
        if any(use.submit is None or use.effect != "unknown" for use in uses):
            yield part, index, slot, uses


def _who(program: Program, use: TensorUse) -> str:
    """Return the user of a tensor, and its use: ``kernel 1 (`add`) takes it as `INOUT```."""
    if use.submit is None:
        return f"the orchestration itself {'reads' if use.effect == 'in' else 'writes'} it"
    kernels = [program.kernel(item.value) for item in use.kernels]
    titles = list(dict.fromkeys(kernel.title for kernel in kernels if kernel is not None))
    who = f"the task of {' and '.join(titles)}" if len(titles) > 1 else (*titles, "a task")[0]
    return f"{who} takes it as `{WORDS[use.effect]}`"


def _read_first(uses: Sequence[TensorUse]) -> list[TensorUse]:
    """Return the uses that read a tensor which nothing can have written before; in branches, each path has its own first use."""
    if uses[0].sure:
        return [] if _may_write(uses[0]) else [uses[0]]
    found = [use for use in uses if use.fresh and not _may_write(use)]
    return [use for use in found if use is found[0] or use.first]


def _last(uses: Sequence[TensorUse]) -> set[str]:
    """Return the effects of the last of some uses, on any path."""
    return {use.effect for use in uses if use.order == uses[-1].order}


def _may_write(use: TensorUse) -> bool:
    """Whether a use may write a tensor without a previous read."""
    return use.effect in ("out", "unknown") or (use.told and use.effect == "inout")


def _may_read(program: Program, use: TensorUse) -> bool:
    """Whether a read in the orchestration really is one, as far as the code of the kernels shows: it may only order tasks."""
    if use.submit is None:
        return True
    shown = access(kernels_of(program, use.submit), use.positions)
    if shown.absent or shown.unresolved or shown.exchanged:
        return shown.absent or use.effect == "in"
    return shown.read is not None and (shown.written is None or shown.reads_first)


def _writes(program: Program, use: TensorUse) -> bool:
    """Whether a write in the orchestration really is one."""
    if use.submit is None:
        return True
    shown = access(kernels_of(program, use.submit), use.positions)
    if shown.absent or shown.unresolved or shown.exchanged:
        return shown.absent or use.effect == "out"
    return shown.written is not None


def _finding(
    part: OrchestrationPart,
    declared: Declared,
    uses: Sequence[TensorUse],
    message: str,
    reason: str,
    severity: Severity = Severity.WARNING,
) -> Diagnostic:
    place = part.at(declared.expr)
    text = f"{declared.expr.text.rpartition('.')[0]}.{Direction.INOUT.value}"
    edit = FileEdit(place.path, Edit(place.span, text))
    related = tuple(Related(Place(part.source or "", use.span), "it is used here") for use in uses)
    fix = Fix(f"declare `{text}`", (edit,), "unsafe", reason) if declared.written else None
    return Diagnostic(message, place, related, fix, severity=severity)

"""The declared direction of each tensor, against how the orchestration adds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.lint.runner import MAX_RELATED
from opschema_cli.source.text import Edit
from opschema_rules.pypto import proofs
from opschema_rules.pypto.claims import Claim, Reading, misplaced, readings, width
from opschema_rules.pypto.dict_edits import fix_of
from opschema_rules.pypto.facts import Payload, Slot
from opschema_rules.pypto.kernel_code import access
from opschema_rules.pypto.model import Declared, Direction, Kernel, Program
from opschema_rules.pypto.task_matching import WORDS, fits


@rule("PTO103", "signature-direction", severity="warning", fixable="safe", proof=proofs.RECORDED, needs=(CPP,))
def signature_direction(program: Program) -> Iterator[Diagnostic]:
    """A direction that differs from how the orchestration adds the tensor.

    The dump copies an `IN` tensor before the kernel runs, an `OUT` tensor afterwards and an `INOUT` tensor both times. It
    follows the signature, not the orchestration: with a wrong direction the dump does not show the values that the kernel
    read or wrote. `add_no_dep` does not define how a tensor is used, so any direction is right for it. A tensor that is
    added with `add_inout` only to order tasks is also `INOUT` to the runtime. Nothing is reported for a direction which the
    C++ of the task's kernels shows to be right, as the dump is then right, too; see `kernel-direction` for an orchestration
    that their code contradicts.

    Which tensor an entry is for depends on the runtime; see `signature-short`, which alone reports a list that leaves
    tensors out. An entry is reported if it is wrong for all tasks of the kernel, on every path through the branches before
    them; see `first-call-wins` for tasks that differ. All wrong entries of a kernel are one finding. Of the kernels of one
    task, those with the longest list are checked entry by entry; a shorter list may also name, in order, only the tensors
    that its kernel uses, and is reported if it is neither that nor a prefix of the task's list.

    Bad:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.INOUT]},
    ]
    ```

    Bad, wrong for both branches:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.IN]},
    ]
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    if (first) {
        p.add_output(orch_args.tensor(2).ref());
    } else {
        p.add_inout(orch_args.tensor(2).ref());
    }
    rt_submit_aiv_task(0, p);
    ```

    Bad, a shorter list that is not part of the task's:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "cube.cpp", "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
        {"func_id": 1, "source": "vector.cpp", "core_type": "aiv", "signature": [D.IN, D.INOUT]},
    ]
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    MixedKernels mixed = {0, 1, 1};
    rt_submit_task(mixed, p);
    ```

    Good, any direction is right for a tensor without dependencies:

    ```python
    KERNELS = [
        {"func_id": 0, "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.OUT, D.INOUT]},
    ]
    ```

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_no_dep(orch_args.tensor(1).ref());
    p.add_inout(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```
    """
    wrong: dict[int, list[_Wrong]] = {}
    for claims in _by_entry(program).values():
        claim = claims[0][0]
        if not any(_accepts(item, reading, slot) for item, reading, slot in claims) and not _is_shown(claims):
            found = _Wrong(claim, [(reading, slot) for _, reading, slot in claims])
            wrong.setdefault(id(claim.kernel), []).append(found)
    for items in wrong.values():
        yield _misdirected(program, items)
    yield from _parts(program)


def _is_shown(claims: Sequence[tuple[Claim, Reading, Slot]]) -> bool:
    """Whether the code of the kernels does what an entry declares; then the dump is right, whatever the orchestration says."""
    return all(access(reading.kernels, [item.slot]).direction is item.entry.direction for item, reading, _ in claims)


class _Wrong(NamedTuple):
    """An entry with the wrong direction for its tensors."""

    claim: Claim
    met: list[tuple[Reading, Slot]]

    @property
    def kinds(self) -> list[str]:
        """The directions in which the orchestration adds them."""
        return list(dict.fromkeys(WORDS[slot.kind] for _, slot in self.met))

    @property
    def added(self) -> str:
        """These directions, as text."""
        return "` and `".join(self.kinds)


def _misdirected(program: Program, items: Sequence[_Wrong]) -> Diagnostic:
    """Return one finding for all wrong entries of a kernel."""
    claim, kernel = items[0].claim, items[0].claim.kernel
    if len(items) == 1:
        message = (
            f"tensor {claim.slot} of {kernel.title} is `{claim.entry.direction.value}` here, and the orchestration "
            f"adds it as `{items[0].added}`: it is dumped at the wrong time"
        )
    else:
        slots: dict[str, list[str]] = {}
        for item in items:
            pair = f"declared `{item.claim.entry.direction.value}`, added as `{item.added}`"
            slots.setdefault(pair, []).append(f"{item.claim.slot}")
        pairs = [f"{pair}: {', '.join(found)}" for pair, found in slots.items()]
        message = (
            f"{len(items)} tensors of {kernel.title} have other directions here than in the orchestration, so that they are "
            f"dumped at the wrong time: {'; '.join(pairs)}"
        )
    related = tuple(dict.fromkeys(place for item in items for place in _added(item.met)))[:MAX_RELATED]
    return Diagnostic(message, kernel.at(claim.entry.expr), related, _redirected(program, items), (kernel.title,))


def _added(met: Sequence[tuple[Reading, Slot]]) -> tuple[Related, ...]:
    """Return the places where a tensor is added, one for each direction."""
    ways = {slot.kind: (reading, slot) for reading, slot in reversed(met)}
    first = [ways[kind] for kind in dict.fromkeys(slot.kind for _, slot in met)]
    return tuple(reading.task.related(slot.span, f"added here as {WORDS[slot.kind]}") for reading, slot in first)


def _parts(program: Program) -> Iterator[Diagnostic]:
    """Yield findings on kernels whose list is always shorter than another of the task, and is neither a prefix nor a part of the
    payload.
    """
    found: dict[Kernel, list[Reading]] = {}
    for reading in readings(program) if program.contract.rule == "widest" else ():
        for kernel in dict.fromkeys(reading.kernels):
            found.setdefault(kernel, []).append(reading)
    for kernel, among in found.items():
        shorter = width(kernel) > 0 and all(width(kernel) < width(reading.driver) for reading in among)
        payloads = [payload for reading in among for payload in reading.task.payloads]
        if not shorter or misplaced(kernel.signature) or any(_is_part(kernel, payload) for payload in payloads):
            continue
        wrong = [index for index, entry in enumerate(_tensors(kernel)) if not _is_met(entry, among, index)]
        if wrong:
            yield _no_part(kernel, wrong[0], among)


def _tensors(kernel: Kernel) -> Sequence[Declared]:
    return kernel.signature.tensors if kernel.signature is not None else ()


def _is_part(kernel: Kernel, payload: Payload) -> bool:
    """Whether a kernel's list names some tensors of a payload, in their order."""
    rest = iter(payload.tensors)
    return all(any(fits(entry.direction, slot) for slot in rest) for entry in _tensors(kernel))


def _is_met(entry: Declared, among: Sequence[Reading], index: int) -> bool:
    """Whether an entry is right for the tensor at its place in any task, or no task has one there."""
    slots = [slot for reading in among for slot in reading.task.slots(index)]
    return not slots or any(fits(entry.direction, slot) for slot in slots)


def _no_part(kernel: Kernel, index: int, among: Sequence[Reading]) -> Diagnostic:
    entry = _tensors(kernel)[index]
    met = [(reading, slot) for reading in among for slot in reading.task.slots(index)]
    kinds = dict.fromkeys(WORDS[slot.kind] for _, slot in met)
    own = ", ".join(item.direction.value for item in _tensors(kernel))
    task = ", ".join(WORDS[slot.kind] for slot in among[0].longest.tensors)
    message = (
        f"tensor {index} of {kernel.title} is `{entry.direction.value}` here, and the orchestration adds it as "
        f"`{'` and `'.join(kinds)}`; nor is [{own}] a part of what the task gets, [{task}]: declare all of that"
    )
    return Diagnostic(message, kernel.at(entry.expr), _added(met), ops=(kernel.title,))


def _by_entry(program: Program) -> dict[int, list[tuple[Claim, Reading, Slot]]]:
    """Return the entries of sound readings by identity, each with every slot that it applies to, on all paths."""
    found: dict[int, list[tuple[Claim, Reading, Slot]]] = {}
    for reading in readings(program):
        for claim in reading.claims if reading.sound or _names_shared(reading) else ():
            for slot in reading.task.slots(claim.slot):
                found.setdefault(id(claim.entry), []).append((claim, reading, slot))
    return found


def _names_shared(reading: Reading) -> bool:
    """Whether each kernel of a task declares the tensors that it uses itself."""
    return reading.task.program.contract.rule == "arg_index" and len(set(reading.kernels)) > 1


def _accepts(claim: Claim, reading: Reading, slot: Slot) -> bool:
    """Whether an entry is right for a slot. If each kernel of a task declares its own tensors, one may read what another writes."""
    return fits(claim.entry.direction, slot) or (_names_shared(reading) and slot.kind in ("inout", "out"))


def _redirected(program: Program, items: Sequence[_Wrong]) -> Fix | None:
    """Return the fix with the right directions of those entries for which they are certain."""
    edits: list[Edit] = []
    for claim, kinds in ((item.claim, item.kinds) for item in items):
        enum, _, _ = claim.entry.expr.text.rpartition(".")
        if len(kinds) == 1 and enum and claim.entry.written:
            edits.append(Edit(claim.entry.expr.span, f"{enum}.{Direction(kinds[0]).value}"))
    if not edits:
        return None
    rights = list(dict.fromkeys(edit.replacement for edit in edits))
    title = (
        f"declare `{rights[0]}`"
        if len(rights) == 1
        else f"declare {len(edits)} directions as the orchestration has them"
    )
    return fix_of(program.file, title, edits)


@rule("PTO111", "first-call-wins", severity="warning", needs=(CPP,))
def first_call_wins(program: Program) -> Iterator[Diagnostic]:
    """A kernel that two tasks submit with the same tensor in different directions.

    A kernel has one signature for all of its tasks, and the compiler uses the first: if one task adds a tensor as `OUT` and
    another as `INOUT`, no signature is right for both, and the dump of one of them is wrong. Add the tensor in the same
    direction, or register the kernel under a separate id for each. Paths through the branches before one submit, and
    iterations of a loop, are not distinguished, and `add_no_dep` matches any direction.

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    CoreTaskArgs q;
    q.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    q.add_inout(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, q);
    ```

    Good, a prefix, and a tensor without dependencies:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    CoreTaskArgs q;
    q.add_input(orch_args.tensor(0).ref());
    q.add_no_dep(orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, q);
    ```
    """
    for claims in _by_entry(program).values():
        ways: dict[str, tuple[Reading, Slot]] = {}
        alike = [item for item in claims if len(item[1].task.slots(item[0].slot)) == 1]
        for _, reading, slot in alike:
            if slot.kind != "no_dep":
                ways.setdefault(WORDS[slot.kind], (reading, slot))
        submits = {reading.task.submit.span for reading, _ in ways.values()}
        if len(submits) > 1 and any(_accepts(item, reading, slot) for item, reading, slot in alike):
            claim = claims[0][0]
            yield Diagnostic(
                f"tensor {claim.slot} of {claim.kernel.title} is added as `{'` and `'.join(ways)}` by different tasks, and "
                f"`{claim.entry.direction.value}` is right for one of them only: add it alike, or give the kernel another id",
                claim.kernel.at(claim.entry.expr),
                tuple(
                    reading.task.related(slot.span, f"added here as {word}") for word, (reading, slot) in ways.items()
                ),
                ops=(claim.kernel.title,),
            )

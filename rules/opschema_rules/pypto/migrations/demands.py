"""The declarations that the tasks of a program require from each of its kernels, and where these are not certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from opschema_rules.pypto.claims import Reading, entries, misplaced, readings, width
from opschema_rules.pypto.facts import Payload
from opschema_rules.pypto.kernel_code import access
from opschema_rules.pypto.model import Direction, Kernel, Program
from opschema_rules.pypto.task_matching import WORDS, Task, entry_of, tasks

Slots: TypeAlias = "tuple[Direction | None, ...]"
"""The directions of tensors; None where any is right (``add_no_dep``)."""


class Demand(msgspec.Struct, frozen=True):
    """The declaration that a kernel should have: its entire signature, and its ``arg_index`` if that must be written too."""

    kernel: Kernel
    directions: tuple[Direction, ...]
    slots: tuple[int, ...] | None = None


class Doubt(msgspec.Struct, frozen=True):
    """A kernel with a wrong declaration that a person has to correct."""

    kernel: Kernel
    task: Task
    reason: str


class _Wish(msgspec.Struct, frozen=True):
    """The demand of one task."""

    reading: Reading
    slots: Slots
    indexes: tuple[int, ...] | None = None


def demands(program: Program) -> Iterator[Demand | Doubt]:
    """Yield the kernels whose signatures are missing or wrong for their tasks, in the order of the description."""
    found = list(readings(program))
    wishes = [(reading, _wishes(reading)) for reading in found]
    lost = {kernel: task for task in tasks(program) if not task.whole or not task.payloads for kernel in task.kernels}
    for kernel in program.kernels:
        own = [(reading, wish) for reading, wish in wishes if kernel in reading.kernels]
        if own or kernel in lost:
            yield from _of_kernel(program, kernel, own, lost.get(kernel))


def _of_kernel(
    program: Program, kernel: Kernel, own: Sequence[tuple[Reading, Mapping[Kernel, _Wish] | str]], lost: Task | None
) -> Iterator[Demand | Doubt]:
    faulty = [reading.task for reading, _ in own if _is_faulty(reading, kernel)]
    why = _lost(lost) if lost is not None else _unsure(program)
    if why:
        silent = [] if lost is None or _declares(kernel) or not program.contract.dumps else [lost]
        yield from (Doubt(kernel, task, why) for task in [*faulty, *silent][:1])
        return
    wanted = _all(program, kernel, [wish for _, wish in own])
    if isinstance(wanted, str):
        yield from (Doubt(kernel, task, wanted) for task in faulty[:1])
    elif wanted is not None:
        yield from _told(program, kernel, wanted)


def _all(program: Program, kernel: Kernel, wishes: Sequence[Mapping[Kernel, _Wish] | str]) -> _Wish | str | None:
    """Return the joint demand of all tasks of a kernel; None if there is none, or the reason why it is not certain."""
    found: _Wish | None = None
    for wish in wishes:
        merged = wish if isinstance(wish, str) else _merged(program, found, wish.get(kernel))
        if isinstance(merged, str):
            return merged
        found = merged
    return found


def _declares(kernel: Kernel) -> bool:
    """Whether a kernel has a nonempty signature, or an unknown one."""
    return kernel.signature is not None and kernel.signature.slots != ()


def _told(program: Program, kernel: Kernel, wish: _Wish) -> Iterator[Demand | Doubt]:
    directions = _written(program, kernel, wish)
    limit = program.contract.core_tensors
    before = tuple(entry.direction for entry in entries(kernel))
    named = wish.indexes is None or wish.indexes == (kernel.indexes or ())
    if named and (directions == before or _is_shown(wish.reading, before, directions)):
        return
    if limit and sum(item is not Direction.SCALAR for item in directions) > limit:
        yield Doubt(kernel, wish.reading.task, f"its task has more tensors than the {limit} that a kernel may have")
    elif wish.indexes is not None and Direction.SCALAR in before:
        yield Doubt(kernel, wish.reading.task, "its signature has scalars, and their `arg_index` is not known")
    else:
        yield Demand(kernel, directions, wish.indexes)


def _is_shown(reading: Reading, before: Sequence[Direction], after: Sequence[Direction]) -> bool:
    """Whether the code of the kernels does what is declared where the orchestration differs, so that the dump is right."""
    if len(before) != len(after) or Direction.SCALAR in before or reading.task.program.contract.rule == "arg_index":
        return False
    differing = [index for index, pair in enumerate(zip(before, after, strict=True)) if pair[0] is not pair[1]]
    return all(access(reading.kernels, [index]).direction is before[index] for index in differing)


def _written(program: Program, kernel: Kernel, wish: _Wish) -> tuple[Direction, ...]:
    """Return the entire list. Undetermined slots keep their declaration or become INOUT, as the code generator writes them;
    scalars are kept.
    """
    before = [entry.direction for entry in entries(kernel)]
    tensors = [item for item in before if item is not Direction.SCALAR]
    found = [
        slot or (tensors[index] if index < len(tensors) else Direction.INOUT) for index, slot in enumerate(wish.slots)
    ]
    if program.contract.rule == "widest":
        found += tensors[len(found) :]
    if len(found) == len(tensors) and not (program.contract.rule == "widest" and misplaced(kernel.signature)):
        rest = iter(found)
        return tuple(item if item is Direction.SCALAR else next(rest) for item in before)
    return (*found, *(item for item in before if item is Direction.SCALAR))


# -- tasks -------------------------------------------------------------------------------------------------------------


def _wishes(reading: Reading) -> Mapping[Kernel, _Wish] | str:
    """Return the demand of a task on each of its kernels, or the reason why it is not certain."""
    rule = reading.task.program.contract.rule
    slots = _agreed(reading.task.payloads, prefix=rule == "widest")
    if slots is None:
        return "the branches before its task add tensors in different ways"
    if rule == "sum":
        return _counted(reading, slots)
    if rule == "arg_index":
        return _named(reading, slots)
    most = width(reading.driver)
    own = [kernel for kernel in reading.kernels if width(kernel) == most]
    return {kernel: _Wish(reading, slots[: _tensors(kernel)] if reading.sound else slots) for kernel in own}


def _counted(reading: Reading, slots: Slots) -> Mapping[Kernel, _Wish] | str:
    """Return the demands under consecutive signatures of a task's kernels; if none has any, the first kernel has all slots."""
    if len(reading.claims) == len(slots):
        return _sliced(reading, slots)
    speaking = [kernel for kernel in dict.fromkeys(reading.kernels) if _tensors(kernel)]
    once = [kernel for kernel in speaking or reading.kernels if reading.kernels.count(kernel) == 1]
    if len(speaking) > 1 or not once:
        return (
            f"the signatures of its task's kernels have {len(reading.claims)} tensors together and the payload "
            f"{len(slots)}, and it is not known which kernel gets which"
        )
    return {kernel: _Wish(reading, slots if kernel is once[0] else ()) for kernel in reading.kernels}


def _sliced(reading: Reading, slots: Slots) -> Mapping[Kernel, _Wish] | str:
    found: dict[Kernel, _Wish] = {}
    at = 0
    for kernel in reading.kernels:
        count = _tensors(kernel)
        part = _both(found[kernel].slots if kernel in found else None, slots[at : at + count], prefix=False)
        at += count
        if part is None:
            return "it runs twice in its task, on tensors that are added in different ways"
        found[kernel] = _Wish(reading, part)
    return found


def _named(reading: Reading, slots: Slots) -> Mapping[Kernel, _Wish] | str:
    """Return the demands if entries name their slots: each of several kernels has those that it names, or all if none names any."""
    kernels = list(dict.fromkeys(reading.kernels))
    if reading.bare or (reading.missing and len(kernels) == 1):
        return {kernel: _Wish(reading, slots, tuple(range(len(slots)))) for kernel in kernels}
    if reading.missing:
        listed = ", ".join(map(str, reading.missing))
        return f"none of its task's kernels names the tensors {listed} of the payload"
    found: dict[Kernel, _Wish] = {}
    for kernel in kernels:
        pairs = zip(entries(kernel), kernel.indexes or (), strict=False)
        own = [(index, entry.direction) for entry, index in pairs if entry.direction is not Direction.SCALAR]
        if own:
            wanted = tuple(_meant(slots, index, declared, shared=len(kernels) > 1) for index, declared in own)
            found[kernel] = _Wish(reading, wanted)
    return found


def _meant(slots: Slots, index: int, declared: Direction, *, shared: bool) -> Direction | None:
    """Return the direction for an entry that names its slot. A kernel that shares its task declares itself what it does to a
    tensor that the task writes, so its declaration is kept.
    """
    wanted = slots[index] if 0 <= index < len(slots) else None
    return declared if shared and wanted in (Direction.OUT, Direction.INOUT) else wanted


def _tensors(kernel: Kernel) -> int:
    return len(kernel.signature.tensors) if kernel.signature is not None else 0


def _is_faulty(reading: Reading, kernel: Kernel) -> bool:
    """Whether a task leaves tensors undeclared, and this kernel is one that should declare them."""
    if reading.bare:
        return bool(reading.longest.tensors)
    return not reading.sound and width(kernel) > 0


def _unsure(program: Program) -> str:
    """Return why a program's orchestration may submit a kernel in unknown ways."""
    entry = entry_of(program)
    if entry is None or entry.unresolved:
        return entry.unresolved if entry is not None else "its orchestration is not known"
    if any(item.value is None for submit in entry.submits for item in submit.kernels):
        return "a task beside its own has a kernel that is not known"
    return ""


def _lost(task: Task) -> str:
    """Return why a task is not known."""
    told = next((payload.unresolved for payload in task.submit.payloads if payload.unresolved), "")
    return told or "the kernel or the arguments of its task are not known"


# -- payloads ----------------------------------------------------------------------------------------------------------


def _agreed(payloads: Sequence[Payload], *, prefix: bool) -> Slots | None:
    """Return the common part of a payload's alternatives; with ``prefix``, one may be the beginning of another."""
    found: Slots | None = None
    for payload in payloads:
        own = tuple(None if slot.kind == "no_dep" else Direction(WORDS[slot.kind]) for slot in payload.tensors)
        found = _both(found, own, prefix=prefix)
        if found is None:
            return None
    return found


def _both(first: Slots | None, second: Slots, *, prefix: bool) -> Slots | None:
    """Return the common part of two lists; None if they contradict each other."""
    if first is None:
        return second
    if len(first) != len(second) and not prefix:
        return None
    pairs = list(zip(first, second, strict=False))
    if any(one is not None and other is not None and one is not other for one, other in pairs):
        return None
    return (*(one or other for one, other in pairs), *first[len(pairs) :], *second[len(pairs) :])


def _merged(program: Program, known: _Wish | None, wish: _Wish | None) -> _Wish | str | None:
    """Return the joint demand of two tasks of a kernel, or their contradiction."""
    if known is None or wish is None:
        return known or wish
    slots = _both(known.slots, wish.slots, prefix=program.contract.rule == "widest")
    if slots is None or known.indexes != wish.indexes:
        return "its tasks add tensors in different ways"
    return _Wish(known.reading, slots, known.indexes)

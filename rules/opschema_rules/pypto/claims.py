"""Claims of kernels' signature entries about the tensors of a task, under each contract.

The dump of arguments is what reads them (simpler, ``args_dump_aicpu.h``, before ``tensor_dump_aicpu.h``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_rules.pypto.facts import Payload
from opschema_rules.pypto.model import Declared, Direction, Kernel, Program, Signature
from opschema_rules.pypto.task_matching import Task, tasks


class Claim(msgspec.Struct, frozen=True):
    """One entry of a kernel's signature, and the payload tensor that it applies to."""

    kernel: Kernel
    entry: Declared
    slot: int


class Reading(msgspec.Struct, frozen=True):
    """A task whose payloads are known and all of whose kernels' signatures are, as the runtime reads these.

    ``kernels`` are in the order in which it does: the one for the cube core first. ``driver`` is the one whose signature
    is the longest, the first of several.
    """

    task: Task
    kernels: tuple[Kernel, ...]
    claims: tuple[Claim, ...]

    @property
    def driver(self) -> Kernel:
        """The kernel with the longest signature; the first of several."""
        return max(self.kernels, key=width)

    @property
    def bare(self) -> bool:
        """Whether none of its kernels declares anything."""
        return not any(width(kernel) for kernel in self.kernels)

    @property
    def longest(self) -> Payload:
        """The payload with the most tensors."""
        return max(self.task.payloads, key=lambda payload: len(payload.tensors))

    @property
    def missing(self) -> list[int]:
        """The tensors of the longest payload without an entry."""
        covered = {claim.slot for claim in self.claims}
        return [slot for slot in range(len(self.longest.tensors)) if slot not in covered]

    @property
    def sound(self) -> bool:
        """Whether the entries match their tensors: none is missing, and if they are only counted, the count is right."""
        if self.task.program.contract.rule == "sum":
            return len(self.claims) in {len(payload.tensors) for payload in self.task.payloads}
        return not self.missing and not any(is_shifted(self.task.program, kernel) for kernel in self.kernels)


def readings(program: Program) -> Iterator[Reading]:
    """Yield the tasks of a program that can be checked, if its runtime reads signatures at all."""
    if not program.contract.dumps:
        return
    for task in tasks(program):
        if task.whole and task.payloads and all(_is_known(kernel) for kernel in task.kernels):
            kernels = in_order(task)
            found = _claims(program, kernels)
            if found is not None:
                yield Reading(task, kernels, tuple(found))


def width(kernel: Kernel) -> int:
    """The number of entries of a kernel's signature; 0 without one."""
    return len(kernel.signature.slots or ()) if kernel.signature is not None else 0


def entries(kernel: Kernel) -> Sequence[Declared]:
    """The entries of a kernel's signature."""
    return (kernel.signature.slots or ()) if kernel.signature is not None else ()


def misplaced(signature: Signature | None) -> list[Declared]:
    """Return the scalars of a signature that precede a tensor."""
    slots = (signature.slots or ()) if signature is not None else ()
    last = max((index for index, slot in enumerate(slots) if slot.direction is not Direction.SCALAR), default=0)
    return [slot for slot in slots[:last] if slot.direction is Direction.SCALAR]


def is_shifted(program: Program, kernel: Kernel) -> bool:
    """Whether scalars in a kernel's signature shift the entries after them to other tensors."""
    return program.contract.rule == "widest" and bool(misplaced(kernel.signature))


def _is_known(kernel: Kernel) -> bool:
    return kernel.signature is None or kernel.signature.slots is not None


def in_order(task: Task) -> tuple[Kernel, ...]:
    """Return the kernels of a fully known task in the order in which the runtime reads them: the cube core's first."""
    pairs = sorted(zip(task.submit.kernels, task.kernels, strict=True), key=lambda pair: pair[0].core)
    return tuple(kernel for _, kernel in pairs)


def _claims(program: Program, kernels: Sequence[Kernel]) -> list[Claim] | None:
    if program.contract.rule == "sum":
        found = [(kernel, entry) for kernel in kernels for entry in entries(kernel) if _is_tensor(entry)]
        return [Claim(kernel, entry, slot) for slot, (kernel, entry) in enumerate(found)]
    if program.contract.rule == "arg_index":
        return _named(kernels)
    most = max(width(kernel) for kernel in kernels)
    return [
        Claim(kernel, entry, slot)
        for kernel in dict.fromkeys(kernels)
        if width(kernel) == most
        for slot, entry in enumerate(entries(kernel))
        if _is_tensor(entry)
    ]


def _named(kernels: Sequence[Kernel]) -> list[Claim] | None:
    """Return the claims of entries that name their slots; None if one of their lists is wrong or not known."""
    found: list[Claim] = []
    for kernel in dict.fromkeys(kernels):
        slots = kernel.indexes if entries(kernel) else ()
        if slots is None or (slots and not kernel.fixed) or len(slots) != len(entries(kernel)):
            return None
        pairs = zip(entries(kernel), slots, strict=True)
        found += [Claim(kernel, entry, slot) for entry, slot in pairs if _is_tensor(entry)]
    return found


def _is_tensor(entry: Declared) -> bool:
    return entry.direction is not Direction.SCALAR

"""Kernels of each task: every submit of an orchestration with the kernels of the description that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import Entry, Payload, Slot, Submit
from opschema_rules.pypto.model import Direction, Kernel, OrchestrationPart, Program

WORDS = {"in": "IN", "out": "OUT", "inout": "INOUT", "no_dep": "NO_DEP", "scalar": "SCALAR"}
"""Names of slot kinds in messages."""


class Task(msgspec.Struct, frozen=True):
    """One submit: the kernels that it runs, and every payload that it may have.

    ``kernels`` are those that are known; ``whole`` is set if all of the task are. ``payloads`` is empty when one of them is
    not known.
    """

    program: Program
    orchestration: OrchestrationPart
    submit: Submit
    kernels: tuple[Kernel, ...]
    whole: bool
    payloads: tuple[Payload, ...]

    def at(self, span: Span) -> Place:
        """Return the place of a stretch of the orchestration's source."""
        return Place(self.orchestration.source or "", span)

    def related(self, span: Span, message: str) -> Related:
        """Return a stretch of the orchestration's source as the other side of a finding."""
        return Related(self.at(span), message)

    @property
    def widest(self) -> int:
        """The largest number of tensors that it may have."""
        return max((len(payload.tensors) for payload in self.payloads), default=0)

    def slots(self, index: int) -> list[Slot]:
        """Return the slots at one index of the payloads that are long enough, one of each kind."""
        found = {item.kind: item for payload in self.payloads for item in payload.tensors[index : index + 1]}
        return list(found.values())


def tasks(program: Program) -> Sequence[Task]:
    """Return the tasks that a program's orchestration submits, if it can be read."""
    if "tasks" not in program.joined:
        program.joined["tasks"] = tuple(_tasks(program))
    return cast("tuple[Task, ...]", program.joined["tasks"])


def _tasks(program: Program) -> Iterator[Task]:
    part = program.orchestration
    entry = part.entry if part is not None else None
    for submit in entry.submits if entry is not None else ():
        kernels = [program.kernel(item.value) for item in submit.kernels]
        known = tuple(kernel for kernel in kernels if kernel is not None)
        lost = any(payload.unresolved for payload in submit.payloads)
        whole = bool(kernels) and len(known) == len(kernels)
        if part is not None:
            yield Task(program, part, submit, known, whole, () if lost else submit.payloads)


def fits(direction: Direction, slot: Slot) -> bool:
    """Whether a direction matches how a slot is added; a slot without dependencies matches any."""
    return slot.kind == "no_dep" or direction.value == WORDS[slot.kind]


def entry_of(program: Program) -> Entry | None:
    """The orchestration's entry, if it can be read."""
    return program.orchestration.entry if program.orchestration is not None else None

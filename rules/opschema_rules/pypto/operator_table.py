"""The pack's operators for the table: kernels with their signatures and their tasks' arguments, entries with their specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.operators.model import (
    Argument,
    Declaration,
    Detail,
    Gap,
    Implementation,
    Operator,
    Passed,
    Use,
)
from opschema_cli.project import Project
from opschema_cli.source.text import Place, Span
from opschema_rules.pypto.claims import Claim, readings
from opschema_rules.pypto.facts import Payload
from opschema_rules.pypto.load import load
from opschema_rules.pypto.model import Declared, Direction, EntryParam, Kernel, Program, SpecEntry, SpecItem
from opschema_rules.pypto.naming import aliases_of, full_names
from opschema_rules.pypto.task_matching import WORDS, Task, entry_of, fits, tasks
from opschema_rules.pypto.wrapping import wanted

if TYPE_CHECKING:
    from opschema_rules.pypto.detection import PyptoOptions


def operators(project: Project, options: PyptoOptions) -> Iterator[Operator]:
    """The kernels of all programs, and pypto-lib's entries."""
    subjects = load(project, options).subjects
    programs = [item for item in subjects if isinstance(item, Program)]
    entries = [item for item in subjects if isinstance(item, SpecEntry)]
    names = full_names(programs, entries)
    for program in programs:
        joined = _Joined(tuple(tasks(program)), tuple(item for found in readings(program) for item in found.claims))
        yield from (_kernel(kernel, joined, names[id(kernel)]) for kernel in program.kernels)
    yield from (_entry(entry, names[id(entry)]) for entry in entries)


class _Joined(msgspec.Struct, frozen=True):
    """The tasks of a program, and the signature entry that applies to each of their slots."""

    tasks: Sequence[Task]
    claims: Sequence[Claim]


# -- kernels ---------------------------------------------------------------------------------------------------------------


def _kernel(kernel: Kernel, joined: _Joined, name: str) -> Operator:
    found = [task for task in joined.tasks if kernel in task.kernels]
    entries = _entries(kernel, joined.claims)
    signature = kernel.signature
    scalars = [item for item in _declared(kernel) if item.direction is Direction.SCALAR]
    arguments = [_slot(kernel, slot, item) for slot, item in sorted(entries.items())]
    arguments += [
        _argument(kernel, f"scalar {place}" if place else "scalar", item) for place, item in enumerate(scalars)
    ]
    reason = signature.reason if signature is not None and signature.slots is None else ""
    return Operator(
        name,
        Declaration("program", kernel.place, None if reason else tuple(arguments), unresolved=reason),
        title=kernel.title,
        aliases=tuple(aliases_of(kernel)),
        implementations=(_source(kernel),),
        uses=tuple(use for task in found for use in _uses(kernel, task, entries)),
        details=tuple(_details(kernel, found)),
        unresolved=tuple(_gaps(kernel)),
    )


def _declared(kernel: Kernel) -> Sequence[Declared]:
    return (kernel.signature.slots or ()) if kernel.signature is not None else ()


def _entries(kernel: Kernel, claims: Sequence[Claim]) -> dict[int, Declared]:
    """Return the entries of a kernel's signature by the slot that the runtime applies each to; by position if no task shows it."""
    found = {item.slot: item.entry for item in claims if item.kernel is kernel}
    tensors = [item for item in _declared(kernel) if item.direction is not Direction.SCALAR]
    return found or dict(enumerate(tensors))


def _slot(kernel: Kernel, slot: int, entry: Declared) -> Argument:
    return _argument(kernel, f"tensor {slot}", entry)


def _argument(kernel: Kernel, name: str, entry: Declared) -> Argument:
    written = entry.direction in (Direction.OUT, Direction.INOUT)
    return Argument(name, entry.direction.value, "posonly", mutated=written, place=kernel.at(entry.expr))


def _source(kernel: Kernel) -> Implementation:
    missing = f"{kernel.missing} is not there" if kernel.missing else ""
    if kernel.source is None:
        return Implementation("kernel", kernel.missing, unresolved=missing or "its source is not known")
    return Implementation("kernel", place=Place(kernel.source, Span(0, 0)))


def _uses(kernel: Kernel, task: Task, entries: Mapping[int, Declared]) -> Iterator[Use]:
    beside = dict.fromkeys(item.title for item in task.kernels if item is not kernel)
    text = f"with {' and '.join(beside)}" if beside else ""
    place = task.at(task.submit.span)
    if not task.payloads:
        yield Use("task", place, text)
    for payload in task.payloads:
        yield Use("task", place, text, tuple(_passed(task, payload, entries)))
    for payload in task.submit.payloads:
        if payload.unresolved:
            yield Use("task", task.at(payload.lost_at or task.submit.span), unresolved=payload.unresolved)


def _passed(task: Task, payload: Payload, entries: Mapping[int, Declared]) -> Iterator[Passed]:
    for slot, item in enumerate(payload.tensors):
        entry = entries.get(slot)
        note = "differs" if entry is not None and not fits(entry.direction, item) else ""
        yield Passed(f"tensor {slot}", WORDS[item.kind], task.at(item.span), note)


def _details(kernel: Kernel, found: Sequence[Task]) -> Iterator[Detail]:
    program, signature = kernel.program, kernel.signature
    yield Detail("program", program.name)
    yield Detail("signature", "" if signature else "none", kernel.at(signature.expr) if signature else None)
    contract = program.contract
    yield Detail("contract", f"{contract.rule} ({contract.source})")
    entry = entry_of(program)
    if entry is not None and not entry.unresolved and not found:
        yield Detail("tasks", "none")


def _gaps(kernel: Kernel) -> Iterator[Gap]:
    part = kernel.program.orchestration
    if part is None or part.entry is None:
        yield Gap("tasks", "the orchestration cannot be read")
    elif part.entry.unresolved:
        yield Gap("tasks", part.entry.unresolved, Place(part.source or "", part.entry.span))


# -- entries ---------------------------------------------------------------------------------------------------------------


def _entry(entry: SpecEntry, name: str) -> Operator:
    params = [item for item in entry.params if item.param.name != "self"]
    whole = all(item.whole for item in entry.params)
    return Operator(
        name,
        Declaration("entry", entry.at(entry.span), tuple(_param(entry, item) for item in params)),
        title=entry.name,
        aliases=(entry.name,),
        implementations=(Implementation("kernel", entry.name, entry.at(entry.span)),),
        uses=(Use("", passed=tuple(_spec(item.param.name, spec) for item in params for spec in item.specs)),),
        unresolved=() if whole else (Gap("specs", "some of its specs are computed"),),
    )


def _param(entry: SpecEntry, item: EntryParam) -> Argument:
    direction = {"in": "IN", "out": "OUT", "inout": "INOUT", "scalar": "SCALAR"}.get(item.direction or "", "")
    word = wanted(entry, item)
    return Argument(
        item.param.name,
        direction,
        item.param.kind,
        mutated=None if item.direction is None else item.direction in ("out", "inout"),
        place=entry.at(item.param.span),
        note=f"has to be `pl.{word}`" if word is not None else "",
        unresolved="" if direction else "its direction is not known",
    )


def _spec(name: str, spec: SpecItem) -> Passed:
    output = {True: "output", False: "input", None: "output or not"}[spec.is_output]
    value = {True: ", initial value", False: "", None: ", initial value or not"}[spec.has_init]
    return Passed(name, f"{output}{value}", Place(spec.file.path, spec.call.span))

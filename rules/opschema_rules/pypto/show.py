"""``opschema show`` of a kernel: its slots, what its signature declares of each and what its tasks pass; and of an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.pack import Shown, ShowRow
from opschema_cli.project import Project
from opschema_cli.source.text import Place, Position
from opschema_rules.pypto.claims import Claim, readings
from opschema_rules.pypto.facts import Slot
from opschema_rules.pypto.model import Declared, Direction, EntryParam, Kernel, Program, SpecEntry, SpecItem
from opschema_rules.pypto.naming import MOST_NAMES, close_names, entries_named, full_names, kernels_named
from opschema_rules.pypto.task_matching import WORDS, Task, fits, tasks
from opschema_rules.pypto.wrapping import wanted

if TYPE_CHECKING:
    from opschema_rules.pypto.detection import PyptoOptions


def show(project: Project, options: PyptoOptions, name: str) -> Shown | Sequence[str]:
    """The one kernel or entry of a name; the names of those that it may mean, or that are close, when it is not one."""
    from opschema_rules.pypto.pack import load

    subjects = load(project, options).subjects
    programs = [item for item in subjects if isinstance(item, Program)]
    entries = [item for item in subjects if isinstance(item, SpecEntry)]
    kernels, functions = kernels_named(programs, name), entries_named(entries, name)
    if len(kernels) + len(functions) == 1:
        return show_kernel(kernels[0]) if kernels else show_entry(functions[0])
    names = full_names(programs, entries)
    several = [names[id(item)] for item in (*kernels, *functions)][:MOST_NAMES]
    return several or close_names(name, programs, entries)


# -- kernels ---------------------------------------------------------------------------------------------------------------


def show_kernel(kernel: Kernel) -> Shown:
    """A kernel: one row for each tensor of its tasks' payloads, and for each entry of its signature."""
    found = [task for task in tasks(kernel.program) if kernel in task.kernels]
    entries = _entries(kernel)
    widest = max((task.widest for task in found), default=0)
    rows = [_row(kernel, found, entries, slot) for slot in range(max([widest, *(slot + 1 for slot in entries)]))]
    scalars = [_scalar(kernel, item) for item in (_declared(kernel)) if item.direction is Direction.SCALAR]
    return Shown(
        kernel.title, list(dict.fromkeys(_places(kernel, found))), [*rows, *scalars], ("slot", "declared", "used")
    )


def _places(kernel: Kernel, found: Sequence[Task]) -> Iterator[tuple[str, str]]:
    program = kernel.program
    yield "program", f"{at(program.project, kernel.place)} {program.name}"
    yield "source", kernel.source or (f"{kernel.missing} is not there" if kernel.missing else "unresolved")
    signature = kernel.signature
    if signature is None:
        yield "signature", "none"
    elif signature.slots is None:
        yield "signature", f"{at(program.project, kernel.at(signature.expr))} unresolved: {signature.reason}"
    else:
        yield "signature", at(program.project, kernel.at(signature.expr))
    yield "contract", f"{program.contract.rule} ({program.contract.source})"
    part = program.orchestration
    if part is None or part.entry is None:
        yield "tasks", "unresolved: the orchestration cannot be read"
        return
    for task in found:
        beside = dict.fromkeys(item.title for item in task.kernels if item is not kernel)
        whom = f" with {' and '.join(beside)}" if beside else ""
        yield "task", f"{at(program.project, task.at(task.submit.span))}{whom}"
        for payload in task.submit.payloads:
            if payload.unresolved:
                where = at(program.project, task.at(payload.lost_at or task.submit.span))
                yield "unresolved", f"{where}: {payload.unresolved}"
    if part.entry.unresolved:
        yield "unresolved", f"{part.source}: {part.entry.unresolved}"
    elif not found:
        yield "tasks", "none"


def _declared(kernel: Kernel) -> Sequence[Declared]:
    return (kernel.signature.slots or ()) if kernel.signature is not None else ()


def _entries(kernel: Kernel) -> dict[int, Declared]:
    """The entries of a kernel's signature by the slot that the runtime reads each for; by place where no task tells."""
    claims: list[Claim] = [item for reading in readings(kernel.program) for item in reading.claims]
    found = {item.slot: item.entry for item in claims if item.kernel is kernel}
    tensors = [item for item in _declared(kernel) if item.direction is not Direction.SCALAR]
    return found or dict(enumerate(tensors))


def _row(kernel: Kernel, found: Sequence[Task], entries: dict[int, Declared], slot: int) -> ShowRow:
    project, entry = kernel.program.project, entries.get(slot)
    used = list(_used(found, slot))
    declared = f"{entry.direction.value:<5}  {_spot(project, kernel.at(entry.expr))}" if entry is not None else "-"
    texts = [f"{WORDS[item.kind]:<5}  {_spot(project, task.at(item.span))}" for task, item in used]
    kinds = {item.kind for _, item in used if item.kind != "no_dep"}
    note = "several ways" if len(kinds) > 1 else ""
    if entry is not None and used and not all(fits(entry.direction, item) for _, item in used):
        note = "differs"
    return ShowRow(f"tensor {slot}", declared, "\n".join(dict.fromkeys(texts)) or "-", note)


def _used(found: Sequence[Task], slot: int) -> Iterator[tuple[Task, Slot]]:
    for task in found:
        for payload in task.payloads:
            yield from ((task, item) for item in payload.tensors[slot : slot + 1])


def _scalar(kernel: Kernel, entry: Declared) -> ShowRow:
    return ShowRow("scalar", f"SCALAR  {_spot(kernel.program.project, kernel.at(entry.expr))}", "", "")


# -- entries ---------------------------------------------------------------------------------------------------------------


def show_entry(entry: SpecEntry) -> Shown:
    """An entry: its parameters, each with the direction that it declares and the specs that are passed for it."""
    rows = [_param(entry, item) for item in entry.params if item.param.name != "self"]
    places = [("entry", at(entry.project, entry.at(entry.span)))]
    if not all(item.whole for item in entry.params):
        places.append(("unresolved", "some of its specs are computed"))
    return Shown(entry.name, places, rows, ("parameter", "declared", "specs"))


def _param(entry: SpecEntry, item: EntryParam) -> ShowRow:
    direction = {"in": "IN", "out": "OUT", "inout": "INOUT", "scalar": "SCALAR"}.get(item.direction or "", "unresolved")
    word = wanted(entry, item)
    declared = f"{direction:<6}  {_spot(entry.project, entry.at(item.param.span))}"
    specs = "\n".join(_spec(entry, spec) for spec in item.specs)
    return ShowRow(item.param.name, declared, specs or "", f"has to be `pl.{word}`" if word is not None else "")


def _spec(entry: SpecEntry, spec: SpecItem) -> str:
    output = {True: "output", False: "input", None: "output or not"}[spec.is_output]
    value = {True: ", initial value", False: "", None: ", initial value or not"}[spec.has_init]
    place = Place(spec.file.path, spec.call.span)
    where = _spot(entry.project, place) if spec.file.path == entry.file.path else at(entry.project, place)
    return f"{where}  {output}{value}"


def at(project: Project, place: Place) -> str:
    """A place for people: path and line."""
    return f"{place.path}:{_spot(project, place).partition(':')[0]}"


def _spot(project: Project, place: Place) -> str:
    """A place in a file that is named above: line and column."""
    source = project.source(place.path)
    position = source.position(place.span.start) if source is not None else Position(1, 1)
    return f"{position.line}:{position.column}"

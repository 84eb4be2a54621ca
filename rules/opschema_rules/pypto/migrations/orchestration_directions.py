"""`orchestration-directions`: `INOUT` for tensors of the orchestration that are read before they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import CPP
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.source.text import Edit
from opschema_rules.pypto import proofs
from opschema_rules.pypto.facts import Entry, Payload, Slot, Submit
from opschema_rules.pypto.migrations.scopes import PROGRAMS
from opschema_rules.pypto.model import Declared, Direction, Program
from opschema_rules.pypto.task_matching import entry_of


class OrchestrationDirections(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `written=true`, tensors that are declared `IN` but written become `INOUT` too; scratch memory is then copied
    back needlessly.
    """

    written: bool = False


class _Fault(msgspec.Struct, frozen=True):
    """An entry of an orchestration's signature that should be INOUT."""

    program: Program
    declared: Declared


def find(draft: Draft, options: OrchestrationDirections) -> Iterator[Site]:
    """Yield the entries of orchestrations' signatures that the uses of their tensors prove wrong."""
    for program in draft.loaded.subjects:
        part = program.orchestration if isinstance(program, Program) and not program.listed else None
        entry = entry_of(part.program) if part is not None else None
        if part is None or part.signature is None or entry is None or entry.unresolved:
            continue
        for index, declared in enumerate(part.signature.slots or ()):
            code = _code(entry, index, declared.direction, options)
            if code:
                title = f"declare tensor {index} of the orchestration `INOUT` instead of `{declared.direction.value}`"
                yield Site(part.at(declared.expr), title, (part.program.name,), (code,), _Fault(part.program, declared))


def _code(entry: Entry, index: int, direction: Direction, options: OrchestrationDirections) -> str:
    """Return the code of the rule that reports a tensor that should be INOUT; empty if nothing proves that."""
    if direction is Direction.OUT and _is_read_first(entry, index):
        return "PTO106"
    written = direction is Direction.IN and options.written and any(_writes(entry, index))
    return "PTO107" if written else ""


@migration(
    "orchestration-directions",
    find=find,
    options=OrchestrationDirections,
    scope=PROGRAMS,
    settled="no task reads a tensor that is declared `OUT` and not written yet",
    proof=proofs.RECORDED,
    needs=(CPP,),
)
def orchestration_directions(draft: Draft, sites: Sequence[Site], options: OrchestrationDirections) -> Iterator[Note]:
    """Declare tensors of the orchestration `INOUT` if a task reads them before any task has written them.

    The runtime copies only `IN` and `INOUT` tensors to the device: reading an `OUT` tensor before anything has written it
    gives old memory. `INOUT` is always right for such a tensor, at the cost of one copy.

    Only the uses in the orchestration's source count. An `OUT` becomes `INOUT` if its first use is not in a branch and

    - adds it by `add_input`; or
    - adds it by `add_inout` to a task in a loop that gets no scalar: the kernel cannot know which of its runs is the first,
      so it reads in that one, too. A kernel with scalars may get this from one (`is_first`), and one that runs once may
      write before it reads; these are kept.

    Tensors that are declared `IN` but written are kept, since the memory may be scratch that is intentionally not copied
    back; with the option they become `INOUT`, too. Orchestrations that cannot be followed completely, and those of several
    `callables`, whose tensors other chips may write, are not changed.

        opschema migrate orchestration-directions
        opschema migrate orchestration-directions -o written=true --only TestScalarData --apply
    """
    for site in sites:
        assert isinstance(site.subject, _Fault)
        declared = site.subject.declared
        if not declared.written:
            yield Note(site.place, f"{site.title} by hand: the signature is computed", leaves_site=True)
            continue
        owner = declared.expr.text.rpartition(".")[0]
        draft.edit(site.place.path, [Edit(declared.expr.span, f"{owner}.{Direction.INOUT.value}")])


def _is_read_first(entry: Entry, index: int) -> bool:
    """Whether the first use of a tensor reads it, on every path through the orchestration."""
    submits = [submit for submit in entry.submits if any(_slots(payload, index) for payload in submit.payloads)]
    touches = [use for use in entry.uses if use.argument == index]
    first = min((*(item.order for item in submits), *(item.order for item in touches)), default=-1)
    if any(payload.unresolved for submit in entry.submits if submit.order <= first for payload in submit.payloads):
        return False
    beginning = [submit for submit in submits if submit.order == first]
    alone = all(use.order > first for use in touches)
    return bool(beginning) and alone and all(_reads(submit, index) for submit in beginning)


def _reads(submit: Submit, index: int) -> bool:
    """Whether each payload of a submit gives its kernels a tensor that they read."""
    return not submit.conditional and all(
        any(slot.kind == "in" for slot in _slots(payload, index)) or _accumulates(submit, payload, index)
        for payload in submit.payloads
    )


def _accumulates(submit: Submit, payload: Payload, index: int) -> bool:
    told = any(slot.kind == "scalar" for slot in payload.slots)
    return submit.looped and not told and any(slot.kind == "inout" for slot in _slots(payload, index))


def _writes(entry: Entry, index: int) -> Iterator[bool]:
    for submit in entry.submits:
        for payload in submit.payloads:
            yield any(slot.kind in ("out", "inout") for slot in _slots(payload, index))
    yield from (use.how == "written" for use in entry.uses if use.argument == index)


def _slots(payload: Payload, index: int) -> list[Slot]:
    return [slot for slot in payload.tensors if slot.argument == index]

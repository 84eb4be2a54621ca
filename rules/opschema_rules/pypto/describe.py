"""Describes a tree for pypto's runtime in ``opschema lint --show-settings``: the contract, limits and files read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.lint.diagnostic import NotUnderstood, Place
from opschema_cli.lint.pack import Description, Fact
from opschema_cli.source.text import Span
from opschema_rules.pypto.model import Contract, Program, SpecEntry
from opschema_rules.pypto.task_matching import entry_of

RULES = {
    "sum": "the kernels of a task together have one entry for each of its tensors",
    "arg_index": "each entry names its tensor in a parallel `arg_index`",
    "widest": "entry i is tensor i, and the longest signature of a task counts",
}
"""How signatures of kernels are matched with a payload, by contract."""

_HINT = (
    "Code that cannot be followed is not checked. If the tree is for another runtime than it shows, set `signatures`, `max-tensors`"
    " or `max-scalars` in `[tool.opschema.pypto]`."
)


def describe_programs(contract: Contract, programs: Sequence[Program], entries: Sequence[SpecEntry]) -> Description:
    """Describe the contract and its limits with their source, the programs found, and unknown parts."""
    facts = [*_contract(contract), *_programs(programs), *_lost(programs)] if programs else []
    return Description("pypto", [*facts, *_entries(entries)], _HINT)


def _contract(contract: Contract) -> Iterator[Fact]:
    assumed = "" if contract.certain else ", assumed: nothing in the tree shows it"
    if contract.dumps:
        yield Fact("signatures", contract.rule, f"{RULES[contract.rule]}{assumed}")
    else:
        yield Fact("signatures", "not read", "the tree's runtime has no dump of arguments that reads them")
    yield Fact("source", contract.source)
    for name, value in (
        ("tensors of a kernel", contract.core_tensors),
        ("scalars of a kernel", contract.core_scalars),
        ("tensors of an orchestration", contract.chip_tensors),
        ("scalars of an orchestration", contract.chip_scalars),
    ):
        yield Fact(name, str(value) if value else "unknown", "at most")


def _programs(programs: Sequence[Program]) -> Iterator[Fact]:
    kernels = [kernel for program in programs for kernel in program.kernels]
    read = sum(entry_of(program) is not None for program in programs)
    signed = sum(kernel.signature is not None and kernel.signature.slots is not None for kernel in kernels)
    yield Fact("programs", str(len(programs)), f"{read} of them with an orchestration that is read")
    yield Fact("kernels", str(len(kernels)), f"{signed} of them with a signature that is read")


def _entries(entries: Sequence[SpecEntry]) -> Iterator[Fact]:
    if entries:
        whole = sum(all(item.whole for item in entry.params) for entry in entries)
        yield Fact("entries", str(len(entries)), f"{whole} of them with all specs that are passed to them")


def _lost(programs: Iterable[Program]) -> Iterator[Fact]:
    found = {(item.place.path, item.reason) for item in unresolved(programs)}
    yield from (Fact("unresolved", path, reason) for path, reason in sorted(found))


def unresolved(programs: Iterable[Program]) -> Iterator[NotUnderstood]:
    """Yield the unknown parts of orchestrations and of their tasks' payloads, by file."""
    for program in programs:
        part = program.orchestration
        if part is not None and part.entry is not None:
            place = Place(part.source or program.file.path, Span(0, 0))
            reasons = {part.entry.unresolved, *_payloads(program)} - {""}
            yield from (NotUnderstood(place, reason) for reason in sorted(reasons))


def _payloads(program: Program) -> set[str]:
    """Return the reasons why payloads of a program are not known."""
    entry = entry_of(program)
    submits = entry.submits if entry is not None else ()
    return {payload.unresolved for submit in submits for payload in submit.payloads}

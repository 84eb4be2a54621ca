"""How kernels and entries are called on the command line, and which one a name means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from opschema_cli.lint.names import closest_names
from opschema_rules.pypto.model import Kernel, Program, SpecEntry

MOST_NAMES = 5
"""Most names that a wrong or ambiguous one is answered with."""


def kernels_named(programs: Iterable[Program], name: str) -> list[Kernel]:
    """The kernels that a name may mean: a ``func_id``, a name, the stem of a source, or one of these behind ``program:``."""
    place, _, part = name.rpartition(":")
    return [
        kernel
        for program in programs
        if not place or place in _program_names(program)
        for kernel in program.kernels
        if part in _kernel_names(kernel)
    ]


def entries_named(entries: Iterable[SpecEntry], name: str) -> list[SpecEntry]:
    """The entries that a name may mean: a function's name, or that behind ``path:``."""
    place, _, part = name.rpartition(":")
    return [item for item in entries if item.name == part and place in ("", item.file.path)]


def full_names(programs: Sequence[Program], entries: Iterable[SpecEntry]) -> dict[int, str]:
    """The name that means each kernel or entry and no other, by its ``id()``."""
    often = Counter(program.name for program in programs)
    found: dict[int, str] = {}
    for program in programs:
        unique = program.form == "class" and often[program.name] == 1
        place = program.name if unique else f"{program.file.path}:{program.name}"
        for kernel in program.kernels:
            number = str(kernel.func_id) if program.kernel(kernel.func_id) is kernel else ""
            found[id(kernel)] = f"{place}:{number or next(iter(_kernel_names(kernel)), '')}"
    return {**found, **{id(item): f"{item.file.path}:{item.name}" for item in entries}}


def close_names(name: str, programs: Sequence[Program], entries: Sequence[SpecEntry]) -> list[str]:
    """The names closest to one that means nothing."""
    short = {item for program in programs for kernel in program.kernels for item in _kernel_names(kernel)}
    known = {*full_names(programs, entries).values(), *short, *(item.name for item in entries)}
    return closest_names(name, known, cutoff=0.5)


def _program_names(program: Program) -> set[str]:
    return {program.name, program.file.path, f"{program.file.path}:{program.name}"}


def _kernel_names(kernel: Kernel) -> list[str]:
    stem = (kernel.source or "").rpartition("/")[2].partition(".")[0]
    number = str(kernel.func_id) if kernel.func_id is not None else ""
    return [item for item in (kernel.text("name") or "", stem, number) if item]

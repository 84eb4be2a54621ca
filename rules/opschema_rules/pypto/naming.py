"""Names of kernels and entries on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from opschema_rules.pypto.model import Kernel, Program, SpecEntry


def aliases_of(kernel: Kernel) -> Iterator[str]:
    """Yield the further names of a kernel, which may be shared: its name, the stem of its source and its ``func_id``, alone and
    after the name or file of its program.
    """
    for name in _kernel_names(kernel):
        yield name
        yield from (f"{program}:{name}" for program in sorted(_program_names(kernel.program)))


def full_names(programs: Sequence[Program], entries: Iterable[SpecEntry]) -> dict[int, str]:
    """Return the unique name of each kernel or entry, by its ``id()``."""
    often = Counter(program.name for program in programs)
    found: dict[int, str] = {}
    for program in programs:
        unique = program.form == "class" and often[program.name] == 1
        place = program.name if unique else f"{program.file.path}:{program.name}"
        for kernel in program.kernels:
            number = str(kernel.func_id) if program.kernel(kernel.func_id) is kernel else ""
            found[id(kernel)] = f"{place}:{number or next(iter(_kernel_names(kernel)), '')}"
    return {**found, **{id(item): f"{item.file.path}:{item.name}" for item in entries}}


def _program_names(program: Program) -> set[str]:
    return {program.name, program.file.path, f"{program.file.path}:{program.name}"}


def _kernel_names(kernel: Kernel) -> list[str]:
    stem = (kernel.source or "").rpartition("/")[2].partition(".")[0]
    number = str(kernel.func_id) if kernel.func_id is not None else ""
    return [item for item in (kernel.text("name") or "", stem, number) if item]

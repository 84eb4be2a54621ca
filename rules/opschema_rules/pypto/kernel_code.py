"""The code of a program's kernels beside its tasks: what a task does to each of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Place, Related
from opschema_rules.pypto.facts import Submit
from opschema_rules.pypto.kernel_facts import Effect, KernelCode
from opschema_rules.pypto.kernel_reading import KERNEL, KERNEL_ARGUMENTS
from opschema_rules.pypto.model import Direction, Kernel, Program


class Access(msgspec.Struct, frozen=True):
    """Accesses of the kernels of a task to one of its tensors: where they read and write it, and the reason if that is unknown.

    ``absent`` says that no kernel of the task has any code to read, ``reads_first`` that each kernel which writes it has surely
    read it before, ``exchanged`` that data of other cores or ranks passes through
    it, so that no direction follows from that.
    """

    read: Related | None = None
    written: Related | None = None
    unresolved: str = ""
    absent: bool = False
    reads_first: bool = False
    exchanged: bool = False

    @property
    def direction(self) -> Direction | None:
        """The direction that the code shows; None if it is not known or the kernels do not access it themselves."""
        if self.unresolved or self.exchanged or not (self.read or self.written):
            return None
        return Direction.INOUT if self.read and self.written else Direction.IN if self.read else Direction.OUT


@cached_on_argument
def arguments_of(kernel: Kernel) -> KernelCode | None:
    """Return the arguments that a kernel uses on its core; None without a source."""
    if kernel.source is None:
        return None
    found = kernel.program.project.readings(KERNEL_ARGUMENTS, [kernel.source]).get(kernel.source)
    return found.of_core(kernel.text("core_type") or "") if found is not None else None


def code_of(kernel: Kernel) -> KernelCode | None:
    """Return the arguments of a kernel with the effects on their memory."""
    found = arguments_of(kernel)
    if found is None or not found.brief or kernel.source is None:
        return found
    whole = kernel.program.project.readings(KERNEL, [kernel.source]).get(kernel.source)
    return whole.of_core(kernel.text("core_type") or "") if whole is not None else None


def kernels_of(program: Program, submit: Submit) -> tuple[Kernel, ...] | None:
    """Return the kernels of a task; None if one of them is not known."""
    found = [program.kernel(item.value) for item in submit.kernels]
    known = tuple(dict.fromkeys(kernel for kernel in found if kernel is not None))
    return known if known and all(found) else None


def access(kernels: Sequence[Kernel] | None, positions: Iterable[int]) -> Access:
    """Return what some kernels do to the tensors at these positions of their payload."""
    if kernels is None:
        return Access(unresolved="its kernels are not known")
    codes = [(kernel, code_of(kernel)) for kernel in kernels]
    if all(code is None or code.absent for _, code in codes):
        return Access(unresolved="there is no code", absent=True)
    places = list(positions)
    lost = [code.lost(at) if code is not None else "there is no code" for _, code in codes for at in places]
    read = [(kernel, found) for kernel, code in codes for at in places if code and (found := code.effect(at, "read"))]
    written = [
        (kernel, found) for kernel, code in codes for at in places if code and (found := code.effect(at, "written"))
    ]
    writers = [code for _, code in codes if code and any(code.effect(at, "written") for at in places)]
    first = bool(writers) and all(any(code.reads_first(at) for at in places) for code in writers)
    exchanged = any(code.effect(at, "exchanged") is not None for _, code in codes if code for at in places)
    reason = next((item for item in lost if item), "")
    return Access(_related(read, "reads"), _related(written, "writes"), reason, False, first, exchanged)


def _related(found: Sequence[tuple[Kernel, Effect]], verb: str) -> Related | None:
    if not found:
        return None
    kernel, effect = found[0]
    return Related(Place(kernel.source or "", effect.span), f"{kernel.title} {verb} it here")

"""The reading of a kernel's C++ file, cached by its content."""

from __future__ import annotations

from opschema_cli.readings import Reading
from opschema_rules.pypto.kernel_facts import KernelCode
from opschema_rules.pypto.kernel_text import KernelText
from opschema_rules.pypto.kernel_walk import KernelWalk


def read_kernel(text: str) -> KernelCode:
    """What a kernel does with its arguments."""
    return KernelWalk(KernelText(text)).run()


def read_arguments(text: str) -> KernelCode:
    """The arguments that a kernel uses, without what it does to their memory."""
    code = KernelWalk(KernelText(text), follows_memory=False).run()
    return KernelCode(code.uses, (), code.open)


KERNEL = Reading("pypto kernel", read_kernel, KernelCode)
KERNEL_ARGUMENTS = Reading("pypto kernel arguments", read_arguments, KernelCode)

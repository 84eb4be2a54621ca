"""PyTorch's operators for which a tree registers kernels, in Python and C++."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from opschema_cli.lint.torch_uses import TorchUse
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Place
from opschema_rules.torchlib.detection import TorchlibOptions
from opschema_rules.torchlib.graph import graph_of
from opschema_rules.torchlib.model import Registration, StrayRegistration
from opschema_rules.torchlib.operators import plain_name


def torch_uses(project: Project, options: TorchlibOptions) -> Iterator[TorchUse]:
    """The registrations for operators of PyTorch, in the order in which they are found."""
    return map(_use, graph_of(project, options).tree.of_torch)


def _use(item: StrayRegistration) -> TorchUse:
    registration = item.registration
    use = TorchUse(plain_name(item.name).removeprefix("aten::"), registration.place)
    kernel = _kernel_place(registration)
    if registration.role not in ("kernel", "fake"):
        return use
    if registration.language == "python":
        return replace(use, kernel="python", place=kernel or use.place, listed=use.place if kernel else None)
    symint = _takes_symint(registration)
    return replace(use, kernel="c++", place=kernel or use.place, listed=use.place if kernel else None, symint=symint)


def _kernel_place(registration: Registration) -> Place | None:
    """The place of a kernel that is written in one place."""
    if isinstance(function := registration.function, Body) and function.function is not None:
        return function.at(function.function.span)
    kernels = registration.kernels if isinstance(registration.kernels, tuple) else ()
    return kernels[0].place if len(kernels) == 1 else None


def _takes_symint(registration: Registration) -> bool:
    kernels = registration.kernels if isinstance(registration.kernels, tuple) else ()
    return any("SymInt" in of for kernel in kernels for of in kernel.parameter_types)

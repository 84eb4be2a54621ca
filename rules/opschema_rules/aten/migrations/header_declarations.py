"""The kernels that a hand-written header declares, each with the operator that requires it, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.cpp_units import DECLARATIONS
from opschema_cli.migrate.migration import OptionError
from opschema_cli.phrases import quoted
from opschema_cli.project import Project
from opschema_cli.source.preprocessor import is_dead
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.cpp_types import CppSignature, OperatorKernel
from opschema_rules.aten.kernel_drift import differences, is_same, likeness
from opschema_rules.aten.kernel_tree import Method
from opschema_rules.aten.kernels import Operators


class Header(msgspec.Struct, frozen=True):
    """A class of a header: its name, its namespace, and the methods that it declares."""

    name: str
    namespace: str
    methods: Sequence[Method]


class Declaration(msgspec.Struct, frozen=True):
    """A declaration and the operators whose kernel it is: one if it is known, several if it may be any of them.

    ``symint`` says that the kernel takes SymInt; ``reason`` why there is no operator, or not only one.
    """

    method: Method
    operators: tuple[str, ...] = ()
    symint: bool = False
    reason: str = ""


def read_header(project: Project, path: str, name: str, operators: Operators) -> Header:
    """Read the class ``name`` of a header; if empty, the only one with methods that have names of kernels.

    Raises:
        OptionError: there is no such header or class, or several classes may be meant; or C++ cannot be read.
    """
    if not project.workspace.is_file(path):
        raise OptionError(
            f"-o header={path}: there is no such file{did_you_mean(nearest(path, project.workspace.files))}"
        )
    read = project.cpp_readings(DECLARATIONS, [path]).get(path)
    if read is None:
        raise OptionError(f"-o header={path}: {project.why_unread(path)}")
    classes: dict[str, list[Method]] = {}
    for item in (item for item in read.functions if item.owner and not is_dead(item.conditions)):
        classes.setdefault(item.owner, []).append(Method(path, item))
    kernels = {one.name for item in operators.values() for one in item.signatures}
    found = [
        owner
        for owner, methods in classes.items()
        if (owner.rpartition("::")[2] == name if name else any(item.name in kernels for item in methods))
    ]
    if len(found) != 1:
        known = ", ".join(f"`{item.rpartition('::')[2]}`" for item in found or classes)
        what = (
            f"it has several classes with kernels ({known}); choose one with -o class="
            if found
            else "it declares no kernel"
        )
        raise OptionError(
            f"-o header={path}: {what}" if not name else f"-o class={name}: the header has {known or 'no class'}"
        )
    namespace, _, own = found[0].rpartition("::")
    return Header(own, namespace, classes[found[0]])


def declarations(header: Header, operators: Operators, origin: str) -> Iterator[Declaration]:
    """Methods of a header with the operators whose kernels they are, in the header's order."""
    named: dict[str, list[tuple[OperatorKernel, CppSignature]]] = {}
    for item in operators.values():
        for signature in item.signatures:
            named.setdefault(signature.name, []).append((item, signature))
    for method in header.methods:
        yield _declaration(method, named.get(method.name, []), origin)


def _declaration(method: Method, named: Sequence[tuple[OperatorKernel, CppSignature]], origin: str) -> Declaration:
    written = method.written
    if not named:
        return Declaration(method, reason=f"no operator of {origin} has a kernel `{written.name}`")
    if written.conditions:
        conditions = " and ".join(f"`{item}`" for item in written.conditions)
        return Declaration(method, reason=f"`{written.name}` is declared only where {conditions} holds")
    same = [(item, signature) for item, signature in named if is_same(signature, written, any_version=True)]
    names = tuple(dict.fromkeys(item.name for item, _ in same))
    if len(names) == 1:
        item, signature = same[0]
        return Declaration(method, names, signature is item.symint)
    if names:
        listed = quoted(names)
        return Declaration(method, names, reason=f"`{written.name}` may be the kernel of any of {listed}")
    return Declaration(method, reason=_unlike(method, named, origin))


def _unlike(method: Method, named: Sequence[tuple[OperatorKernel, CppSignature]], origin: str) -> str:
    """The difference of a declaration from the most similar kernel of its name."""
    item, signature = max(named, key=lambda pair: likeness(pair[1], method.written))
    said = (
        "; ".join(text for _, text in differences(signature, method.written, any_version=True))
        or "has types that are not known"
    )
    return f"`{method.name}` {said}; the nearest kernel of {origin} is that of `{item.name}`: `{signature}`"

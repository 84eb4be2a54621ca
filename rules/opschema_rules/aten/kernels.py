"""The kernels of a backend: the operators of its YAML matched with the methods of its class that the tree's C++ defines.

torchgen declares the class from the YAML, so that each operator needs a definition of its kernel, and a method that no
operator asks for does not compile. The kernels of operators under ``full_codegen`` are generated, so that none is looked for.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.regular_files import content_digest
from opschema_rules.aten.cpp_types import CppSignature, OperatorKernel, operator_kernel
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.kernel_search import ClassFound
from opschema_rules.aten.kernel_tree import Method
from opschema_rules.aten.model import BackendFile, BackendItem, Function, NativeEntry, NativeFile, Reference
from opschema_rules.aten.signatures import full_name

LISTS = ("supported", "autograd", "full_codegen")
"""The lists whose operators have kernels."""


class Operators(dict[str, OperatorKernel]):
    """The operators of a reference by their names."""

    @cached_property
    def by_kernel(self) -> dict[str, list[tuple[OperatorKernel, CppSignature]]]:
        """The operators, each with its signatures, by the names of their kernels."""
        found: dict[str, list[tuple[OperatorKernel, CppSignature]]] = {}
        for item in self.values():
            for one in item.signatures:
                found.setdefault(one.name, []).append((item, one))
        return found


"""All operators of a native_functions.yaml, by their names with overloads."""

DIALECTS = ("torchgen", "lazy-tensor")


class Asked(msgspec.Struct, frozen=True):
    """An operator of the YAML and the kernel that torchgen requires; ``generated`` if torchgen also writes it."""

    item: BackendItem
    operator: OperatorKernel
    signature: CppSignature
    generated: bool

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.signature.name


class Missing(msgspec.Struct, frozen=True):
    """An operator without a kernel; ``near`` is a method that no operator requires and that may be meant as its kernel."""

    asked: Asked
    near: Method | None = None


class UncheckedKernels(msgspec.Struct, eq=False, frozen=True):
    """A backend whose kernels are not checked: the tree defines no class of the expected name and namespace.

    ``asked`` are the operators whose kernels have to be written. ``moved`` is the class of that
    name in another namespace, ``alike`` one of another name.
    """

    backend: BackendFile
    class_name: str
    asked: list[Asked]
    moved: ClassFound | None = None
    alike: ClassFound | None = None

    def kernels_in(self, found: ClassFound | None) -> int:
        """The number of kernels that a class may define, by their names."""
        return sum(item.name in found.kernels for item in self.asked) if found is not None else 0


class BackendKernels(msgspec.Struct, eq=False, dict=True):
    """A backend's operators and its kernels. ``class_name`` is the class that the kernels are methods of, ``operators`` all
    that the backend may list.

    ``drifted`` are kernels whose signature is not that of their operator, ``unlisted`` those that no operator asks for,
    ``repeated`` those that torchgen writes as well; ``paired`` are the others. ``unwritten`` are the operators without a kernel
    where these are more than half of all: they are still to be written, or are in another tree.
    """

    backend: BackendFile
    class_name: str
    operators: Operators
    asked: list[Asked] = msgspec.field(default_factory=list)
    missing: list[Missing] = msgspec.field(default_factory=list)
    unwritten: list[Asked] = msgspec.field(default_factory=list)
    unlisted: list[Method] = msgspec.field(default_factory=list)
    repeated: list[tuple[Asked, Method]] = msgspec.field(default_factory=list)
    drifted: list[tuple[Asked, Method]] = msgspec.field(default_factory=list)
    paired: list[tuple[Asked, Method]] = msgspec.field(default_factory=list)

    @cached_property
    def asked_by_name(self) -> dict[str, list[Asked]]:
        """The operators that the backend lists, by the names of their kernels."""
        found: dict[str, list[Asked]] = {}
        for item in self.asked:
            found.setdefault(item.name, []).append(item)
        return found

    @property
    def certain(self) -> bool:
        """Whether the operators are those that the tree is built with."""
        return self.backend.reference is not None and self.backend.reference.certain


def sides(kernels: BackendKernels, asked: Asked) -> tuple[Related, ...]:
    """The other sides of a finding at a kernel: where its operator is listed, and where that is declared."""
    reference = kernels.backend.reference
    listed = kernels.backend.related(asked.item.name_node, f"`{asked.item.name}` is under `{asked.item.section}`")
    if reference is None:
        return (listed,)
    return listed, Related(Place(reference.path, asked.operator.span), f"it is `{asked.operator.schema}`")


def default_class(backend: str) -> str:
    """The class of a backend's kernels where its YAML has no ``class_name``."""
    return f"{backend}NativeFunctions"


def class_of(backend: BackendFile) -> str:
    """The class of a backend's kernels; empty when it is not known."""
    if backend.get("class_name") is not None:
        name = backend.text_of("class_name")
    else:
        name = default_class(backend.name) if backend.name else ""
    return name if name.isidentifier() else ""


def read_operators(project: Project, reference: Reference) -> Operators:
    """The operators of a reference, by their names."""
    reading = _reading(reference)
    found = project.readings(reading, [reference.path]).get(reference.path, ())
    return Operators({item.name: item for item in found})


def read_operator(project: Project, reference: Reference, name: str) -> OperatorKernel | None:
    """One operator of a reference: of those that :func:`read_operators` has read in this run or another, else of its own entry."""
    if name not in reference.catalogue.by_name:
        return None
    reading = _reading(reference)
    known = project.shelf(reading.name, reading.kind).get(project.workspace.digest(reference.path)) is not None
    entry = None if known else _entries_of(reference.native).get(name)
    if entry is None or entry.schema is None or full_name(entry.schema) != name:
        return _by_name(project, reference).get(name)
    return operator_kernel(Function(name, entry.schema, entry))


@lru_cache(maxsize=2)
def _by_name(project: Project, reference: Reference) -> Operators:
    return read_operators(project, reference)


def _reading(reference: Reference) -> Reading[str, tuple[OperatorKernel, ...]]:
    name = f"aten-operator-kernels/{content_digest(reference.torchgen.digest.encode())}"
    return Reading(name, lambda _: _kernels_of(reference.native), tuple[OperatorKernel, ...])


@cached_on_argument
def _entries_of(native: NativeFile) -> dict[str, NativeEntry]:
    """The entries by their names; of a name that appears twice the first."""
    return {entry.name: entry for entry in reversed(native.entries)}


@cached_on_argument
def _kernels_of(native: NativeFile) -> tuple[OperatorKernel, ...]:
    return tuple(map(operator_kernel, functions_of(native).values()))


def kernels_named(operators: Operators, name: str) -> list[tuple[OperatorKernel, CppSignature]]:
    """The operators whose kernels have a name."""
    return operators.by_kernel.get(name, [])

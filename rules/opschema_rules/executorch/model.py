"""The pack's subjects: operator lists of ExecuTorch, their entries, and the tree that they are part of.

A part of an entry that is malformed reads as absent; one rule reports it, and no other judges it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.cpp_units import CppUnits
from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_changes import schema_changes
from opschema_cli.sequences import grouped
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.entry import FuncEntry, string
from opschema_rules.aten.torchgen_table import newest_torchgen

if TYPE_CHECKING:
    from opschema_rules.aten.known import AtenOperators
    from opschema_rules.executorch.detection import ExecutorchOptions

OWN_FIELDS = frozenset({"op", "kernels", "type_alias", "dim_order_alias"})
"""Fields of an entry that torchgen does not know (``ET_FIELDS`` of ExecuTorch's ``codegen/parse.py``, and ``op``)."""

KERNEL_FIELDS = frozenset({"arg_meta", "kernel_name"})

ATEN = "aten"


_LIBRARY = re.compile(rb"\bEXECUTORCH_LIBRARY\s*\(\s*(\w+)\s*,\s*\"([\w.]+)\"")


def _registered(data: bytes) -> list[str]:
    found = _LIBRARY.findall(data) if b"EXECUTORCH_LIBRARY" in data else []
    return [f"{namespace.decode()}::{name.decode()}" for namespace, name in found]


_RUNTIME_NAMES = Reading("operators of EXECUTORCH_LIBRARY", _registered, list[str])


class Kernel(msgspec.Struct, frozen=True, eq=False):
    """An item of ``kernels``: the C++ function that it names, and the node of that name.

    ``namespace`` is the one in which the code generator declares the function: ``a::f`` is ``a::native::f``.
    """

    node: Node
    name_node: Node
    written: str

    @property
    def symbol(self) -> str:
        """Name of the function without its namespace."""
        return self.written.rpartition("::")[2]

    @property
    def written_namespace(self) -> str:
        """The namespace as written; ``at`` if there is none."""
        return self.written.rpartition("::")[0] or "at"

    @property
    def namespace(self) -> str:
        """The namespace of the function that is called."""
        return f"{self.written_namespace}::native"

    @property
    def full(self) -> str:
        """Full name of the function."""
        return f"{self.namespace}::{self.symbol}"


class OpEntry(FuncEntry, eq=False, dict=True):
    """An entry of a list: an operator of ATen by its name (``op``), or another one by its schema (``func``)."""

    owner: OpList

    @property
    def known_fields(self) -> frozenset[str]:
        """The fields of the code generator."""
        return OWN_FIELDS | newest_torchgen().vocabulary.fields

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on."""
        return f"{self.node.start} {self.owner.content_key}"

    @property
    def head(self) -> tuple[Node, str] | None:
        """The node that names the operator, and its name as written; None without one."""
        for field in ("func", "op"):
            node, text = self.get(field), self.text(field)
            if node is not None and text is not None:
                return node, text.partition("(")[0].strip()
        return None

    @property
    def qualified(self) -> str:
        """The name with namespace and overload; empty if it is not known."""
        name = self.head[1] if self.head is not None else ""
        return name if "::" in name or not name else f"{ATEN}::{name}"

    @property
    def name(self) -> str:
        """The name in findings."""
        return self.qualified

    @cached_property
    def schema(self) -> OperatorSchema | None:
        """The schema: its own, or that of ATen's operator; None if it is not known."""
        if self.schema_text is not None:
            return self.schema_text.schema
        return self.owner.tree.aten_schema(self.qualified) if self.qualified else None

    def differs(self, other: OperatorSchema) -> bool:
        """Whether its schema differs from another one."""
        return self.schema is not None and any(schema_changes(other, self.schema))

    @property
    def place(self) -> Place:
        """The operator's name."""
        if self.head is None:
            return self.at(self.first)
        return self.at(self.inner(self.head[0], Span(0, len(self.head[1]))))

    def declared(self) -> Related:
        """The declaration of the operator, as the other side of a finding."""
        schema = self.schema
        return Related(self.place, f"it is `{schema}`" if schema is not None else "it is declared here")

    @cached_property
    def kernel_items(self) -> Sequence[Node]:
        """The items of ``kernels``."""
        node = self.get("kernels")
        return [self.file.document.follow(item) for item in node.items] if node is not None and node.is_sequence else ()

    @cached_property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels whose names are strings."""
        return list(self._kernels())

    def _kernels(self) -> Iterator[Kernel]:
        for item in self.kernel_items:
            name = item.get("kernel_name") if item.is_mapping else None
            name = self.file.document.follow(name) if name is not None else None
            text = string(name)
            if name is not None and text:
                yield Kernel(item, name, text)


class OpList(msgspec.Struct, eq=False, dict=True):
    """One YAML file."""

    file: YamlFile
    tree: Tree
    entries: list[OpEntry] = msgspec.field(default_factory=list)

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on."""
        return f"{self.file.path} {self.file.source.digest}"

    @property
    def names_kernels(self) -> bool:
        """Whether it says which functions are the kernels; else it lists the operators of a build alone."""
        return any(entry.get("kernels") is not None for entry in self.entries)


class Tree(msgspec.Struct, eq=False, dict=True):
    """One workspace with its lists."""

    project: Project
    options: ExecutorchOptions
    lists: list[OpList] = msgspec.field(default_factory=list)

    @property
    def entries(self) -> Iterator[OpEntry]:
        """The entries of all lists."""
        return (entry for item in self.lists for entry in item.entries)

    @cached_property
    def by_name(self) -> Mapping[str, list[OpEntry]]:
        """The entries by their qualified names."""
        return grouped((entry.qualified, entry) for entry in self.entries if entry.qualified)

    @cached_property
    def namespaces(self) -> Counter[str]:
        """The number of operators that are listed in each namespace."""
        return Counter(name.partition("::")[0] for name in self.by_name)

    @cached_property
    def libraries(self) -> Mapping[str, list[str]]:
        """The operators that each C++ file registers itself, with ``EXECUTORCH_LIBRARY``."""
        found = self.project.scan(_RUNTIME_NAMES, filter(is_cpp, self.project.workspace.files))
        return {path: names for path, names in found if names}

    @cached_property
    def runtime_names(self) -> frozenset[str]:
        """The operators that C++ registers itself."""
        return frozenset(name for names in self.libraries.values() for name in names)

    @cached_property
    def units(self) -> CppUnits:
        """The C++ files with the headers that they include."""
        return CppUnits(self.project)

    @cached_property
    def aten(self) -> AtenOperators:
        """The operators of the torch that the tree is for."""
        # Not at the top: entries with schemas of their own need none of them.
        from opschema_rules.aten.known import aten_operators
        from opschema_rules.torchlib.versions import find_release

        release = find_release(self.project, self.options.torch)
        return aten_operators(self.project, release.version, named=bool(self.options.torch) and not release.doubt)

    def aten_schema(self, qualified: str) -> OperatorSchema | None:
        """The schema of an operator of ATen in the torch that the tree is for; None if it is not known there."""
        namespace, _, name = qualified.partition("::")
        found = self.aten.operator(name) if namespace == ATEN else None
        return found.schema if found is not None else None

"""ATen's operators for other packs: those in the torch that a tree is checked against, and the C++ signatures of their kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.requirements import Version, dotted
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_rules.aten.cpp_types import CppSignature
from opschema_rules.aten.detection import AtenOptions, files_of
from opschema_rules.aten.kernels import read_operator
from opschema_rules.aten.known_operators import certain_slip
from opschema_rules.aten.model import Reference
from opschema_rules.aten.native import is_before_known, may_be_before_known, read_native
from opschema_rules.aten.native_table import entry_releases
from opschema_rules.aten.pins import pins_of
from opschema_rules.aten.reference import References
from opschema_rules.aten.releases import Torchgens
from opschema_rules.aten.torchgen_table import ever_operators, known_releases


def _added(data: bytes) -> list[str]:
    """The operators that a patch adds to `native_functions.yaml`."""
    found = _ADDED.findall(data) if b"native_functions.yaml" in data else []
    return [name.decode() for name in found]


_ADDED = re.compile(rb"^\+[ \t]*- func:[ \t]*([\w.]+)\(", re.MULTILINE)
_PATCHED = Reading("aten operators of patches", _added, list[str])


class AtenOperator(msgspec.Struct, frozen=True):
    """An operator of the reference: its schema and where that is, and the signatures of its kernels as torch compares them.

    ``plain`` and ``symint`` are the types of parameters with the returned one last; None where torch has no kernel of that
    kind that another is compared with, or its types are not known.
    """

    name: str
    schema: OperatorSchema
    place: Place
    plain: tuple[str, ...] | None = None
    symint: tuple[str, ...] | None = None

    @property
    def related(self) -> Related:
        """Its schema, as the other side of a finding."""
        return Related(self.place, f"it is `{self.schema}`")


class AtenOperators(msgspec.Struct, dict=True):
    """The operators that a tree is checked against."""

    project: Project
    reference: Reference

    @property
    def origin(self) -> str:
        """Their source, for messages."""
        return self.reference.origin

    @property
    def certain(self) -> bool:
        """Whether they are those of the torch that the tree is built with."""
        return self.reference.certain

    def has(self, name: str) -> bool:
        """Whether an operator exists: here, in a release that the tree may be for, or in a torch that the tree patches."""
        catalogue = self.reference.catalogue
        if self.are_younger:
            return certain_slip(name) is None
        known = name in catalogue.by_name or not catalogue.complete
        return known or (not self.certain and name in ever_operators()) or name in self._patched

    def candidates(self, name: str) -> Sequence[str]:
        """Names that an unknown one may have meant."""
        return self.reference.catalogue.candidates(name)

    @cached_property
    def are_younger(self) -> bool:
        """Whether the tree is for a torch that is older than all known releases, so that these are not its operators."""
        return not self.certain and pins_of(self.project.workspace).are_before(known_releases())

    @cached_property
    def are_older(self) -> bool:
        """Whether they are the tree's own, of a PyTorch that is older than all known releases, whose C++ types are not known."""
        return self.certain and may_be_before_known(self.reference.torchgen) and is_before_known(self.reference.native)

    @property
    def may_be_others(self) -> bool:
        """Whether the tree may be for an unknown release of torch: a newer or a much older one."""
        return not self.certain and pins_of(self.project.workspace).may_be_other_than(known_releases())

    def schemas(self, name: str) -> Iterator[OperatorSchema]:
        """Return the schemas of an operator in the torch that the tree is for, that of the reference first; in all known
        releases if that is not certain. Those of the releases are read on demand. Yields nothing if the releases are newer.
        """
        if self.are_younger:
            return
        operator = self.operator(name)
        if operator is not None:
            yield operator.schema
        if not self.certain:
            yield from released_schemas(name)

    def operator(self, name: str) -> AtenOperator | None:
        """An operator; None if its schema or the C++ types of its kernels are not known."""
        if self.are_younger or self.are_older:
            return None
        found = read_operator(self.project, self.reference, name)
        schema = parse_schema(found.schema).schema if found is not None else None
        if found is None or schema is None:
            return None
        # Torch need not have kernels that take integers in the place of SymInt, so that theirs are not compared.
        plain = _types(found.plain) if found.symint is None else None
        return AtenOperator(name, schema, Place(self.reference.path, found.span), plain, _types(found.symint))

    @cached_property
    def _patched(self) -> frozenset[str]:
        """The operators that patches of the tree add to PyTorch's own file."""
        paths = (path for path in self.project.workspace.files if path.endswith((".patch", ".diff")))
        return frozenset(name for _, names in self.project.scan(_PATCHED, paths) for name in names)


@lru_cache(maxsize=4096)
def released_schemas(name: str) -> tuple[OperatorSchema, ...]:
    """The schemas that known releases have for an operator."""
    found = dict.fromkeys(_released().get(name, ()))
    return tuple(schema for text in found if (schema := parse_schema(text).schema) is not None)


@lru_cache(maxsize=1)
def _released() -> dict[str, list[str]]:
    """The schemas of all known releases, by the name of the operator."""
    found: dict[str, list[str]] = {}
    for entry, _ in entry_releases():
        text = _FUNC.match(entry)
        if text is not None:
            found.setdefault(text["name"], []).append(text["schema"].strip())
    return found


_FUNC = re.compile(r"- func:\s*(?P<schema>(?P<name>[\w.]+)\([^\n]*)")


def _types(signature: CppSignature | None) -> tuple[str, ...] | None:
    return (*(item.type for item in signature.parameters), signature.returns) if signature is not None else None


@lru_cache(maxsize=2)
def aten_operators(project: Project, version: Version, *, named: bool) -> AtenOperators:
    """Return the operators that a workspace is checked against: those of the release in the options, of its own
    native_functions.yaml, of an installed torch, or else of the release.
    """
    options = AtenOptions()
    torchgens = Torchgens(project, options.installed_torch, dotted(version) if named else "")
    natives = [
        read_native(file, None, torchgens.of_native(file))
        for kind, file in files_of(project, options)
        if kind == "native"
    ]
    return AtenOperators(project, References(torchgens, natives).of_aten(version))

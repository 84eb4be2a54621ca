"""Knowledge about ATen's operators, by name: from the workspace's own files, and from the torch that backends are checked
against.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.project import Project
from opschema_rules.aten.derivative_operators import operators_of
from opschema_rules.aten.derivatives import Definition, definition_of, read_derivatives
from opschema_rules.aten.entry import Entry
from opschema_rules.aten.groups import Group, groups_of
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile, BackendItem, DerivativesFile, Function, NativeFile, TagsFile
from opschema_rules.aten.native import read_tags
from opschema_rules.aten.signatures import SignatureKey, base_name, view_key

if TYPE_CHECKING:
    from opschema_rules.aten.detection import AtenOptions


class Sources(msgspec.Struct, frozen=True, dict=True):
    """The files, in the order in which they are consulted."""

    natives: Sequence[NativeFile]
    derivatives: Sequence[DerivativesFile]
    tag_files: Sequence[TagsFile]
    backends: Sequence[BackendFile]

    @cached_property
    def tags(self) -> Mapping[str, Entry]:
        """The tags that are described."""
        return {entry.text("tag") or "": entry for file in self.tag_files for entry in file.entries}

    @cached_property
    def listed(self) -> Mapping[str, list[tuple[BackendFile, BackendItem]]]:
        """The entries of backends' lists, by operator."""
        found: dict[str, list[tuple[BackendFile, BackendItem]]] = {}
        for backend in self.backends:
            for item in backend.items:
                found.setdefault(item.name.removeprefix("aten::"), []).append((backend, item))
        return found

    @cached_property
    def views(self) -> Mapping[SignatureKey, list[Group]]:
        """The groups of variants that are views or copies of one another."""
        found: dict[SignatureKey, list[Group]] = defaultdict(list)
        for native in self.natives:
            for group in groups_of(native).all:
                found[view_key(group.key)].append(group)
        return found

    @cached_property
    def _definitions(self) -> Mapping[str, list[Definition]]:
        """The entries of derivatives.yaml by the names of their operators, and by the base names after a blank."""
        found: dict[str, list[Definition]] = {}
        for entry in (entry for file in self.derivatives for entry in file.entries):
            definition = definition_of(entry)
            if definition is not None and definition.operator is not None:
                base = base_name(definition.operator.schema.name).base
                found.setdefault(definition.operator.name, []).append(definition)
                found.setdefault(f" {base}", []).append(definition)
        return found

    def derivatives_of(self, function: Function) -> Iterator[tuple[Definition, str]]:
        """The entries of derivatives.yaml for an operator; of another variant, with words that say so."""
        own = self._definitions.get(function.name)
        if own is not None:
            yield from ((item, "") for item in own)
            return
        for item in self._definitions.get(f" {base_name(function.schema.name).base}", ()):
            operator, operators = item.operator, operators_of(item.entry.owner)
            variants = operators.variants_of(operator) if operator is not None and operators is not None else ()
            if operator is not None and any(other.name == function.name for other in variants):
                yield item, f", of {operator.name}"
                return


def read_sources(project: Project, options: AtenOptions) -> Sources:
    """Return the files of a workspace, and those of the torch that its backends are checked against."""
    subjects = load(project, options).subjects
    natives = [item for item in subjects if isinstance(item, NativeFile)]
    derivatives = [item for item in subjects if isinstance(item, DerivativesFile)]
    tags = [item for item in subjects if isinstance(item, TagsFile)]
    backends = [item for item in subjects if isinstance(item, BackendFile)]
    references = {item.reference.path: item.reference for item in backends if item.reference is not None}
    own = {item.path for item in natives}
    for reference in references.values():
        if reference.path not in own:
            natives.append(reference.native)
            derivatives += _derivatives_of(project, reference.native)
            tags += _tags_of(project, reference.native)
    return Sources(natives, derivatives, tags, backends)


def _derivatives_of(project: Project, native: NativeFile) -> Iterator[DerivativesFile]:
    """The derivatives.yaml that torch installs with its operators."""
    path = _beside(project, native, "../../autograd/derivatives.yaml")
    file = project.yaml(path) if path else None
    if file is not None:
        yield read_derivatives(file, native, native.torchgen)


def _tags_of(project: Project, native: NativeFile) -> Iterator[TagsFile]:
    path = _beside(project, native, "tags.yaml")
    file = project.yaml(path) if path else None
    if file is not None:
        yield read_tags(file)


def _beside(project: Project, native: NativeFile, relative: str) -> str:
    """A file that lies with ATen's own outside of the workspace; empty if it does not."""
    if not native.path.startswith("/"):
        return ""
    path = project.workspace.admit(Path(native.path).parent.joinpath(relative).resolve())
    return path if project.workspace.is_file(path) else ""

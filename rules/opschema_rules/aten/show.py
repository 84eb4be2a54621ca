"""``opschema show aten::add.Tensor``: an operator's variants, kernels, derivative, tags and backends, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.names import closest_names
from opschema_cli.lint.pack import Shown, ShowRow
from opschema_cli.project import Project
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_rules.aten.catalogue_reading import catalogue_of
from opschema_rules.aten.derivative_operators import operators_of
from opschema_rules.aten.derivatives import Definition, definition_of, read_derivatives
from opschema_rules.aten.entry import Entry, string
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import BackendFile, DerivativesFile, Function, NativeEntry, NativeFile, TagsFile
from opschema_rules.aten.native import read_tags
from opschema_rules.aten.signatures import VariantKind, base_name, kind_of, view_key
from opschema_rules.aten.traits import IMPLICIT, is_view, tags_of

if TYPE_CHECKING:
    from opschema_rules.aten.detection import AtenOptions

_KINDS: dict[VariantKind, str] = {
    "functional": "functional",
    "inplace": "in-place",
    "out": "out",
    "mutable": "mutable",
    "scratch": "scratch",
}
_WORDS = 60
"""Most characters of a tag's description."""

_HEADINGS = ("part", "what it is", "where")


class _Known(msgspec.Struct, frozen=True):
    """All that is known of operators here: ATen's own files, those of the tree or of the torch that a backend is judged by."""

    project: Project
    natives: Sequence[NativeFile]
    derivatives: Sequence[DerivativesFile]
    tags: Sequence[TagsFile]
    backends: Sequence[BackendFile]

    def where(self, place: Place) -> str:
        """A place as ``path:line``; of a file outside of the workspace by its name alone."""
        path = place.path.rpartition("/")[2] if place.path.startswith("/") else place.path
        source = self.project.source(place.path)
        return path if source is None else f"{path}:{source.position(place.span.start).line}"

    def at(self, entry: Entry, target: Node | Span) -> str:
        """A node or span of an entry's file as ``path:line``."""
        return self.where(entry.at(target))


def show(project: Project, options: AtenOptions, name: str) -> Shown | Sequence[str]:
    """The operator of that name; the closest names when there is none."""
    known = _known(project, options)
    prefix = "aten::" if name.startswith("aten::") else ""
    name = name.removeprefix("aten::")
    declared = [entry for item in known.natives for entry in item.by_name.get(name, ())]
    broken = [entry for entry in declared if entry.schema is None]
    found = [functions_of(item)[name] for item in known.natives if name in functions_of(item)]
    if found and not broken:
        return _shown(known, found[0])
    listed = list(_backends(known, name))
    if broken:
        places = [("declared", known.where(entry.place)) for entry in broken]
        text = "Its schema cannot be read; `opschema lint` tells why."
        return Shown(f"aten::{name}", places, listed, _HEADINGS, text)
    if listed:
        return Shown(
            _own_schema(known, name) or name, [], listed, _HEADINGS, "It is no operator of ATen that is known here."
        )
    return [prefix + other for other in _close(known, name)]


def _close(known: _Known, name: str) -> list[str]:
    """The operators that a name may mean: of ATen, or else of a backend."""
    catalogues = [catalogue_of(item) for item in known.natives]
    for asked in (name, name.lower()):
        if found := [other for item in catalogues for other in item.candidates(asked)]:
            return [*dict.fromkeys(found)][:3]
    return closest_names(name, [item.name for backend in known.backends for item in backend.items], cutoff=0.75)


def _own_schema(known: _Known, name: str) -> str | None:
    """The schema of an operator that a backend has for itself."""
    items = (item for backend in known.backends for item in backend.items if item.name == name)
    return next((string(item.name_node) for item in items if item.options is not None), None)


def _known(project: Project, options: AtenOptions) -> _Known:
    # Not at the top: the pack imports this module.
    from opschema_rules.aten.pack import load

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
    return _Known(project, natives, derivatives, tags, backends)


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


def _shown(known: _Known, function: Function) -> Shown:
    entry = function.entry
    folder = f"{entry.file.path.rpartition('/')[0]}/" if entry.file.path.startswith("/") else ""
    places = [("generated" if function.generated else "declared", f"{folder}{known.where(entry.place)}")]
    rows = [*_group(known, function), *_variants(known, function), *_dispatch(known, function)]
    rows += [*_derivatives(known, function), *_tags(known, function), *_backends(known, function.name)]
    title = str(function.schema)
    return Shown(title if function.schema.namespace else f"aten::{title}", places, rows, _HEADINGS)


def _group(known: _Known, function: Function) -> Iterator[ShowRow]:
    """The variants of one signature, those that torchgen generates included, and the view that it copies or is."""
    groups = groups_of(function.entry.owner)
    group = groups.by_entry.get(function.entry)
    if group is None:
        return
    for kind, name in _KINDS.items():
        entry = group.variants.get(kind)
        if entry is not None:
            structured = ", structured" if entry.flag("structured") else ""
            yield ShowRow(name, f"{entry.name}{structured}", known.where(entry.place))
    for item in group.generated:
        yield ShowRow(_KINDS[item.kind], f"{item.name}, generated", _field(known, item.base, "autogen"))
    for other in groups.all:
        if other is not group and view_key(other.key) == view_key(group.key):
            for entry in other.entries:
                yield ShowRow("view" if is_view(entry) else "view's copy", entry.name, known.where(entry.place))


def _field(known: _Known, entry: NativeEntry, name: str) -> str:
    """Place of a field, or of the entry."""
    key = entry.key(name)
    return known.where(entry.place) if key is None else known.at(entry, key)


def _variants(known: _Known, function: Function) -> Iterator[ShowRow]:
    if not function.generated:
        entry = function.entry
        yield ShowRow("variants", entry.text("variants") or "function", _field(known, entry, "variants"))


def _dispatch(known: _Known, function: Function) -> Iterator[ShowRow]:
    """The kernels by dispatch key: the entry's own, those of the structured kernel it delegates to, and torchgen's."""
    entry, left = function.entry, set(function.dispatch)
    own = [] if function.generated else [(entry, "")]
    delegate = entry.text("structured_delegate") if own else None
    own += [(out, f" ({out.name})") for out in entry.owner.by_name.get(delegate or "", ())]
    for item, of in own:
        for keys, kernel, node in _table(item):
            having = [key for key in keys if key in left]
            left.difference_update(having)
            if having:
                yield ShowRow("dispatch", f"{', '.join(having)}: {kernel}{of}", known.at(item, node))
    for key in sorted(left):
        yield ShowRow("dispatch", f"{key}: {_filled_in(function, key)}", known.where(entry.place))


def _table(entry: NativeEntry) -> Iterator[tuple[list[str], str, Node]]:
    """The lines of a dispatch table: their keys, the kernel, where they begin; with what torchgen makes kernels of."""
    lines: dict[int, tuple[list[str], str, Node]] = {}
    for item in entry.dispatch():
        lines.setdefault(item.key_node.start, ([], item.kernel, item.key_node))[0].append(item.key)
    yield from lines.values()
    ufunc = entry.key("ufunc_inner_loop")
    if ufunc is not None:
        yield ["CPU", "CUDA"], ufunc.value, ufunc


def _filled_in(function: Function, key: str) -> str:
    """The kernel of a key that stands in no table."""
    if key == IMPLICIT:
        out = "_out" if kind_of(function.schema) == "out" else ""
        return f"at::native::{function.schema.name}{out}, made of other operators"
    return "made by torchgen"


def _derivatives(known: _Known, function: Function) -> Iterator[ShowRow]:
    """The formulas of the operator, else those of a variant that torchgen takes for it."""
    definitions = [definition_of(entry) for file in known.derivatives for entry in file.entries]
    having = [item for item in definitions if item is not None and item.operator is not None]
    own = [item for item in having if item.operator is not None and item.operator.name == function.name]
    base = base_name(function.schema.name).base
    for item in own or [item for item in having if _is_variant(item, function, base)][:1]:
        of = "" if item in own or item.operator is None else f", of {item.operator.name}"
        for block in item.blocks:
            key = "" if block.key is None else f" ({block.dispatch})"
            for formula in block.formulas:
                told = f"{', '.join(formula.names)}{key}: {' '.join(formula.text.split())}{of}"
                yield ShowRow("derivative", told, known.at(item.entry, formula.key))


def _is_variant(definition: Definition, function: Function, base: str) -> bool:
    operator, operators = definition.operator, operators_of(definition.entry.owner)
    if operator is None or operators is None or base_name(operator.schema.name).base != base:
        return False
    return any(item.name == function.name for item in operators.variants_of(operator))


def _tags(known: _Known, function: Function) -> Iterator[ShowRow]:
    described = {entry.text("tag"): entry for file in known.tags for entry in file.entries}
    entry = function.entry
    for tag in () if function.generated else tags_of(entry):
        words = (described[tag].text("desc") or "").split(". ")[0] if tag in described else ""
        told = f"{tag}: {shorten(words, _WORDS, placeholder='…')}" if words else tag
        yield ShowRow("tag", told, _field(known, entry, "tags"))


def _backends(known: _Known, name: str) -> Iterator[ShowRow]:
    for backend in known.backends:
        for item in backend.items:
            if item.name.removeprefix("aten::") == name:
                yield ShowRow(
                    "backend", f"{backend.name or backend.dialect}: {item.section}", known.at(backend, item.name_node)
                )

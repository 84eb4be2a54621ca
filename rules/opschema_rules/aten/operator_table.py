"""The pack's operators for the table: ATen's with their variants, kernels, derivatives and tags, and those that backends list."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import TYPE_CHECKING

from opschema_cli.operators.model import (
    Declaration,
    Detail,
    Gap,
    Implementation,
    Operator,
    Registration,
    Related,
    Tag,
)
from opschema_cli.operators.schemas import arguments_of, returns_of, schema_text
from opschema_cli.project import Project
from opschema_cli.source.yaml import Node
from opschema_rules.aten.entry import string
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import Function, NativeEntry
from opschema_rules.aten.signatures import VariantKind, kind_of, view_key
from opschema_rules.aten.sources import Sources, read_sources
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
"""Maximum number of characters of a tag's description."""


def operators(project: Project, options: AtenOptions) -> Iterator[Operator]:
    """Yield ATen's operators, including those of the torch that a backend is checked against, and the others that backends list."""
    sources = read_sources(project, options)
    seen: set[str] = set()
    for native in sources.natives:
        for name, entries in native.by_name.items():
            broken = [entry for entry in entries if entry.schema is None]
            if broken and name and name not in seen:
                seen.add(name)
                yield from (_broken(sources, name, entry) for entry in broken)
        for name, function in functions_of(native).items():
            if name not in seen:
                seen.add(name)
                yield _operator(sources, function)
    yield from (_listed(sources, name) for name in sources.listed if name not in seen)


def _operator(sources: Sources, function: Function) -> Operator:
    entry, schema = function.entry, function.schema
    title = schema.qualified_name
    text = entry.schema_text if not function.generated else None
    declaration = Declaration(
        "generated" if function.generated else "declared",
        entry.place,
        arguments_of(schema, lambda item: text.place(item.span) if text is not None else None),
        returns_of(schema, lambda item: text.place(item.span) if text is not None else None),
        tuple(_tags(sources, function)),
        schema_text(schema),
    )
    return Operator(
        title if schema.namespace else f"aten::{title}",
        declaration,
        aliases=() if schema.namespace else (function.name,),
        implementations=(*_kernels(function), *_derivatives(sources, function)),
        registrations=tuple(_backends(sources, function.name)),
        related=tuple(_variants(sources, function)),
        details=tuple(_method_variants(function)),
    )


def _broken(sources: Sources, name: str, entry: NativeEntry) -> Operator:
    reason = "its schema cannot be read; `opschema lint` reports why"
    declaration = Declaration("declared", entry.place, None, None, unresolved=reason)
    return Operator(f"aten::{name}", declaration, aliases=(name,), registrations=tuple(_backends(sources, name)))


def _listed(sources: Sources, name: str) -> Operator:
    """Return an operator that only backends list: their own, or one of an unknown ATen."""
    backend, item = sources.listed[name][0]
    own = string(item.name_node) if item.options is not None else None
    schema = f"({own.partition('(')[2]}" if own is not None and "(" in own else ""
    place = backend.at(item.name_node)
    unknown = () if own is not None else (Gap("declaration", "it is not an operator of ATen that is known here"),)
    return Operator(
        name,
        Declaration("listed", place, None, None, schema=schema),
        aliases=(f"aten::{name}",),
        registrations=tuple(_backends(sources, name)),
        unresolved=unknown,
    )


def _variants(sources: Sources, function: Function) -> Iterator[Related]:
    """The variants of one signature, those that torchgen generates included, and the view that it copies or is."""
    group = groups_of(function.entry.owner).by_entry.get(function.entry)
    if group is None:
        return
    for kind, name in _KINDS.items():
        entry = group.variants.get(kind)
        if entry is not None:
            structured = ", structured" if entry.flag("structured") else ""
            yield Related(name, f"{entry.name}{structured}", entry.place)
    for item in group.generated:
        autogen = item.base.key("autogen")
        place = item.base.place if autogen is None else item.base.at(autogen)
        yield Related(_KINDS[item.kind], f"{item.name}, generated", place)
    for other in sources.views[view_key(group.key)]:
        if other is not group:
            for entry in other.entries:
                yield Related("view" if is_view(entry) else "view's copy", entry.name, entry.place)


def _method_variants(function: Function) -> Iterator[Detail]:
    entry = function.entry
    if not function.generated:
        key = entry.key("variants")
        yield Detail("variants", entry.text("variants") or "function", entry.place if key is None else entry.at(key))


def _kernels(function: Function) -> Iterator[Implementation]:
    """The kernels by dispatch key: the entry's own, those of the structured kernel it delegates to, and torchgen's."""
    entry, left = function.entry, set(function.dispatch)
    own = [] if function.generated else [(entry, "")]
    delegate = entry.text("structured_delegate") if own else None
    own += [(out, f" ({out.name})") for out in entry.owner.by_name.get(delegate or "", ())]
    for item, of in own:
        for keys, kernel, node in _table(item):
            having = tuple(key for key in keys if key in left)
            left.difference_update(having)
            if having:
                yield Implementation("kernel", f"{kernel}{of}", item.at(node), having)
    for key in sorted(left):
        if key == IMPLICIT:
            out = "_out" if kind_of(function.schema) == "out" else ""
            symbol = f"at::native::{function.schema.name}{out}"
            yield Implementation("decomposition", f"{symbol}, made of other operators", entry.place, (key,))
        else:
            yield Implementation("kernel", "made by torchgen", entry.place, (key,), generated=True)


def _table(entry: NativeEntry) -> Iterator[tuple[list[str], str, Node]]:
    """Yield the lines of a dispatch table: their keys, the kernel, their place; including those for which torchgen makes
    kernels.
    """
    lines: dict[int, tuple[list[str], str, Node]] = {}
    for item in entry.dispatch():
        lines.setdefault(item.key_node.start, ([], item.kernel, item.key_node))[0].append(item.key)
    yield from lines.values()
    ufunc = entry.key("ufunc_inner_loop")
    if ufunc is not None:
        yield ["CPU", "CUDA"], ufunc.value, ufunc


def _derivatives(sources: Sources, function: Function) -> Iterator[Implementation]:
    """The formulas of the operator, else those of a variant that torchgen takes for it."""
    for item, of in sources.derivatives_of(function):
        for block in item.blocks:
            keys = () if block.key is None else (block.dispatch,)
            for formula in block.formulas:
                told = f"{', '.join(formula.names)}: {' '.join(formula.text.split())}{of}"
                yield Implementation("autograd", place=item.entry.at(formula.key), keys=keys, text=told)


def _tags(sources: Sources, function: Function) -> Iterator[Tag]:
    entry = function.entry
    for tag in () if function.generated else tags_of(entry):
        listed = sources.tags.get(tag)
        words = (listed.text_of("desc") if listed is not None else "").split(". ")[0]
        key = entry.key("tags")
        place = entry.place if key is None else entry.at(key)
        yield Tag(tag, shorten(words, _WORDS, placeholder="…") if words else "", place)


def _backends(sources: Sources, name: str) -> Iterator[Registration]:
    for backend, item in sources.listed.get(name, ()):
        place = backend.at(item.name_node)
        yield Registration("backend", item.section, place, (backend.name or backend.dialect,))

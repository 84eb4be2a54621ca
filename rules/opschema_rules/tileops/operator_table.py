"""The pack's operators for the table: an entry with its signature and workload rows, and the class that implements it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from opschema_cli.operators.model import (
    Argument,
    Constraint,
    Declaration,
    Implementation,
    Operator,
    Return,
    Signature,
    WorkloadRow,
)
from opschema_cli.operators.parameters import arguments_of
from opschema_cli.project import Project
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.text import Place, Span
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.constraints import size_rule
from opschema_rules.tileops.entry_parts import ParamDecl, Row, Tensor
from opschema_rules.tileops.load import load
from opschema_rules.tileops.made_methods import made_method
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.signature import unreadable_section

if TYPE_CHECKING:
    from opschema_rules.tileops.detection import TileopsOptions

_Dtypes: TypeAlias = Mapping[int, tuple[str, ...]]
"""The dtypes of each tensor, by its ``id()``."""

_TAKES = {"__init__": ("static dim", "param"), "forward": ("input", "param")}
"""The arguments that each method of an op takes."""


def operators(project: Project, options: TileopsOptions) -> Iterator[Operator]:
    """The entries of all manifests."""
    yield from (operator_of(item) for item in load(project, options).subjects if isinstance(item, OpEntry))


def operator_of(entry: OpEntry) -> Operator:
    """An entry as an operator."""
    dtypes = {id(item): entry.dtypes.dtypes.get(key, ()) for key, item in entry.dtype_keys.items()}
    unreadable = unreadable_section(entry)
    return Operator(
        entry.name,
        Declaration(
            "declared",
            entry.place,
            (*_inputs(entry, dtypes), *_static_dims(entry), *(_param(entry, item) for item in entry.params)),
            tuple(_return(entry, item, dtypes) for item in entry.outputs),
            status=entry.status or "no status",
            unresolved=f"`{unreadable}` of its signature is not a mapping that can be read" if unreadable else "",
            planned=entry.status == "spec-only",
            constraints=tuple(_constraints(entry)),
            combinations=tuple(_combinations(entry)),
        ),
        implementations=(_implementation(entry), *_kernels(entry)),
        rows=tuple(_row(entry, item) for item in entry.rows),
    )


def _inputs(entry: OpEntry, dtypes: _Dtypes) -> Iterable[Argument]:
    for item in entry.inputs:
        yield Argument(
            item.name,
            item.dtype or "?",
            role="input",
            optional=item.optional,
            mutated=None if item.misstates("mutated") else item.mutated,
            dtypes=dtypes.get(id(item), ()),
            shape=item.shape or "",
            place=entry.at(item.key),
        )


def _return(entry: OpEntry, item: Tensor, dtypes: _Dtypes) -> Return:
    return Return(item.name, item.dtype or "?", "", dtypes.get(id(item), ()), item.shape or "", entry.at(item.key))


def _static_dims(entry: OpEntry) -> Iterable[Argument]:
    owner = entry.get("signature", "static_dims")
    for key, value in owner.pairs() if owner is not None and owner.is_mapping else ():
        yield Argument(key.value, _text(value), role="static dim", place=entry.at(key))


def _param(entry: OpEntry, item: ParamDecl) -> Argument:
    return Argument(
        item.name,
        item.type or "?",
        "kwonly" if item.kw_only else "normal",
        "param",
        repr(item.default) if item.has_default else None,
        place=entry.at(item.key),
    )


def _constraints(entry: OpEntry) -> Iterator[Constraint]:
    """The shape rules, and the constraints of single sizes."""
    yield from (Constraint(item.text, entry.at(item.node)) for item in entry.shape_rules)
    for tensor in entry.tensors:
        owner = tensor.attribute("constraints")
        for key, value in entry.file.document.follow(owner).pairs() if owner is not None else ():
            yield Constraint(size_rule(key.value, _text(value)), entry.at(key))


def _combinations(entry: OpEntry) -> Iterator[Constraint]:
    """The combinations of dtypes that the entry lists."""
    owner, data = entry.get("signature", "dtype_combos"), entry.data_at("signature", "dtype_combos")
    if (
        owner is None
        or not owner.is_sequence
        or not isinstance(data, list)
        or entry.doubtful("signature", "dtype_combos")
    ):
        return
    for node, item in zip(owner.items, data, strict=True):
        if isinstance(item, dict):
            pairs = sorted(f"`{name}: {dtype}`" for name, dtype in item.items())
            yield Constraint(", ".join(pairs), entry.at(node))


def _implementation(entry: OpEntry) -> Implementation:
    found = entry.op_class
    if not isinstance(found, ClassRef):
        reason = getattr(found, "reason", "no class of this name")
        return Implementation("class", entry.name, unresolved=reason)
    implementation = OpImplementation(entry, found)
    signatures = tuple(_signature(implementation, method) for method in _TAKES)
    return Implementation("class", found.cls.name, Place(found.file.path, found.cls.span), signatures=signatures)


def _kernels(entry: OpEntry) -> Iterator[Implementation]:
    for node, path in entry.source_paths("kernel"):
        found = entry.manifest.locate(path)
        if found is None:
            yield Implementation("kernel", path, registered=entry.at(node), unresolved="there is no such file")
        else:
            yield Implementation("kernel", place=Place(found, Span(0, 0)), registered=entry.at(node))


def _signature(implementation: OpImplementation, method: str) -> Signature:
    found = implementation.program.member(implementation.ref, method)
    params = implementation.call_params(method)
    made = made_method(implementation, method) if params is None else None
    if made is not None:
        return Signature(method, _place(made.ref), arguments_of(made.ref.file, made.params), _TAKES[method])
    if not isinstance(found, FunctionRef) or params is None:
        place = _place(found) if isinstance(found, FunctionRef) else None
        reason = "a decorator may change its parameters" if place is not None else getattr(found, "reason", "absent")
        return Signature(method, place, None, _TAKES[method], unresolved=reason)
    return Signature(method, _place(found), arguments_of(found.file, params), _TAKES[method])


def _place(ref: FunctionRef) -> Place:
    return Place(ref.file.path, ref.function.span)


def _row(entry: OpEntry, row: Row) -> WorkloadRow:
    label = row.data.get("label")
    source = entry.file.source.text
    values = {
        key.value: " ".join(source[value.start : value.end].split())
        for key, value in row.node.pairs()
        if key.kind == "scalar" and key.value not in ("label", "dtypes")
    }
    return WorkloadRow(label if isinstance(label, str) else "", tuple(row.dtypes), values, entry.at(row.node))


def _text(node: Node) -> str:
    return node.value if node.kind == "scalar" else "?"

"""FlyDSL's types of arguments and parameters, and the attributes that only one of these types has."""

from __future__ import annotations

from opschema_cli.source.python import Expr
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.arguments import ON_DEVICE, Argument
from opschema_rules.flydsl.device_values import device_values
from opschema_rules.flydsl.model import FlyTree, Kind, Parameter, Traced

_TILED_COPIES = ("make_tiled_copy", "make_tiled_copy_tv", *(f"make_tiled_copy_{operand}" for operand in "ABC"))

_MADE = {
    **dict.fromkeys(_TILED_COPIES, "TiledCopy"),
    "make_tiled_mma": "TiledMma",
    "make_copy_atom": "CopyAtom",
    "make_mma_atom": "MmaAtom",
    "make_layout": "Layout",
    "make_ordered_layout": "Layout",
}
"""Result types, by the last word of the FlyDSL function."""

_SLICES = frozenset({"get_slice", "thr_slice"})
_MMA = (
    "atom_layout make_fragment_A make_fragment_B make_fragment_C mma_atom permutation_mnk thr_layout_vmnk tile_size_mnk"
)
ATTRIBUTES = {
    "Tensor": frozenset(
        ["dtype", "element_type", "fill", "layout", "leading_dim", "load", "memspace", "shape", "store", "stride"]
    ),
    "TiledCopy": _SLICES | {"layout_dst_tv_tiled", "layout_src_tv_tiled", "layout_tv_tiled", "tile_mn"},
    "TiledMma": _SLICES | frozenset(_MMA.split()),
    "CopyAtom": frozenset({"layout_dst_tv", "layout_ref_tv", "layout_src_tv", "thr_id", "thr_layout", "val_bits"}),
    "MmaAtom": frozenset[str](),
    "Layout": frozenset({"rank", "shape", "stride"}),
}
"""The attributes of FlyDSL's types in 0.1.8, 0.4.2 and 0.5.0, without those that all types have."""

_OF_NUMBERS = frozenset({"dtype"})


def clash(item: Argument) -> tuple[str, str] | None:
    """Return the FlyDSL types of an argument and its parameter, if both are known and differ."""
    given, parameter = _given(item), item.parameter
    if not given or not (parameter.kind in ON_DEVICE or parameter.dsl in ATTRIBUTES):
        return None
    return (given, parameter.dsl) if given != parameter.dsl and parameter.dsl != "Layout" else None


def _given(item: Argument) -> str:
    own = item.own
    if own is not None:
        return own.dsl if own.kind in ON_DEVICE or own.dsl in ATTRIBUTES else ""
    expr: Expr | None = item.expr
    if item.expr.kind == "name" and item.around is not None:
        bound = device_values(item.tree, item.around).bindings(item.call.body, item.expr.text) or []
        expr = bound[0] if len(bound) == 1 and isinstance(bound[0], Expr) else None
    made = item.tree.names.called(item.call.body, expr) if expr is not None and expr.kind == "call" else ""
    return _MADE.get(made, "")


def lacking(tree: FlyTree, target: Traced, parameter: Parameter, given: str) -> str:
    """Return an attribute that a function reads from a parameter and that a value of the type ``given`` does not have."""
    has = _OF_NUMBERS if is_number(given) else ATTRIBUTES.get(given)
    wanted = ATTRIBUTES.get(parameter.dsl, frozenset[str]()) - (has or frozenset[str]())
    if has is None or parameter.kind is Kind.CONSTEXPR:
        return ""
    bodies = [body for body in tree.within(target) if body.binder(parameter.name) is target.body]
    if any(item.target == parameter.name for body in bodies for item in body.scope.assigns):
        return ""
    found = (
        use.name.split(".")[1:2]
        for body in bodies
        for use in body.scope.uses
        if use.name.startswith(f"{parameter.name}.")
    )
    return next((name for names in found for name in names if name in wanted), "")

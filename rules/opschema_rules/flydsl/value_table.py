"""FlyDSL's types of values in traced functions: their attributes in the releases 0.1.8 to 0.5.0, and what makes them.

A method is written with the parameters that it takes in any of these releases, ``loc`` and ``ip`` by keyword only. The test
``test_value_table.py`` compares the table with installed releases.
"""

from __future__ import annotations

import re
from functools import cache

from opschema_cli.source.python import Expr, Param

Method = tuple[Param, ...]
"""The parameters of a method, without the instance."""

_ANY = "context dump get_name location maybe_downcast owner replace_all_uses_except replace_all_uses_with set_type type uses"
"""The attributes of every MLIR value."""

_ARITH = """
addf(other, *, fastmath=, loc=) exp2(*, fastmath=, loc=) extf(target_type, *, fastmath=, loc=) extsi(target_type, *, loc=)
extui(target_type, *, loc=) index_cast(target_type, *, loc=) maximumf(other, *, fastmath=, loc=)
minimumf(other, *, fastmath=, loc=) rsqrt(*, fastmath=, loc=) select(true_value, false_value, *, loc=) shrui(amount, *, loc=)
shuffle_xor(offset, width, *, loc=) truncf(target_type, *, fastmath=, loc=) trunci(target_type, *, loc=)
with_signedness(signed)
"""

_COPY = """
get_slice(thr_idx) layout_dst_tv_tiled layout_src_tv_tiled layout_tv_tiled set_value(field, value=) thr_slice(thr_idx) tile_mn
"""

_MMA = """
atom_layout get_slice(thr_idx) make_fragment_A(a, *, stages=, loc=, ip=) make_fragment_B(b, *, stages=, loc=, ip=)
make_fragment_C(c, *, stages=, loc=, ip=) mma_atom permutation_mnk set_value(field, value=) thr_layout_vmnk thr_slice(thr_idx)
tile_size_mnk tv_layout_A_tiled tv_layout_B_tiled tv_layout_C_tiled
"""

_TYPES = {
    "Tensor": f"""
        {_ANY} address_space alignment dtype element_type fill(value, *, loc=, ip=) iter layout leading_dim load(*, loc=, ip=)
        memspace shape store(vector, *, loc=, ip=) stride value_type
    """,
    "Pointer": f"""
        {_ANY} address_space alignment dtype element_type llvm_ptr load(dtype=, *, ip=, loc=) memspace store(value, *, loc=, ip=)
        value_type view(layout, *, loc=, ip=)
    """,
    "TiledCopy": f"{_ANY} {_COPY}",
    "ThrCopy": f"""
        {_ANY} {_COPY} partition_D(dst, *, loc=, ip=) partition_S(src, *, loc=, ip=) retile(t, *, loc=, ip=) thr_idx tiled_copy
    """,
    "TiledMma": f"{_ANY} {_MMA}",
    "ThrMma": f"""
        {_ANY} {_MMA} partition_A(a, *, loc=, ip=) partition_B(b, *, loc=, ip=) partition_C(c, *, loc=, ip=) thr_idx tiled_mma
    """,
    "CopyAtom": f"""
        {_ANY} layout_dst_tv layout_ref_tv layout_src_tv set_value(field, value=, *, loc=, ip=) thr_id thr_layout val_bits
    """,
    "MmaAtom": f"""
        {_ANY} layout_A_tv layout_B_tv layout_C_tv set_value(field, value=, *, loc=, ip=) shape_mnk thr_id thr_layout
    """,
    "Layout": f"""
        {_ANY} depth get_1d_coord(index, *, loc=, ip=) get_flat_coord(index, *, loc=, ip=) get_hier_coord(index, *, loc=, ip=)
        is_leaf is_static is_static_shape is_static_stride rank shape stride
    """,
    "Vector": f"""
        {_ANY} {_ARITH} apply_op bitcast(dtype, *, loc=, ip=) broadcast_to(target_shape, *, loc=, ip=) dtype element_type filled
        filled_like from_elements ir_value(*, loc=, ip=) load make_type numel
        reduce(op, init_val=, reduction_profile=, *, fastmath=, loc=, ip=) reshape(shape, *, loc=, ip=) shape
        shuffle(other, mask, *, loc=, ip=) store(memref, indices, *, alignment=, loc=, ip=) to(dtype, *, rounding_mode=, loc=, ip=)
        zeros_like
    """,
    "Numeric": """
        addf(other, *, fastmath=, loc=) bitcast(dtype) dtype exp2(*, fastmath=, loc=) from_ir_type from_python_value
        ir_value(*, loc=, ip=) is_static() log_width maximumf(other, *, loc=) minimumf(other, *, loc=) promote
        select(true_value, false_value, *, loc=) shrui(amount, *, loc=) shuffle_xor(offset, width, *, loc=) signed
        to(dtype, *, rounding_mode=, loc=, ip=) value width
    """,
    "SharedAllocator": "DEFAULT_BASE_ALIGNMENT allocate(storable_or_int, alignment=) allocated_bytes base_ptr is_static",
}

TYPES = tuple(_TYPES)
"""The types of the table."""

NUMERIC = "Numeric"
"""The type of all numbers; their attributes do not depend on the kind of number."""

MAKERS = {
    **{f"make_tiled_copy{ending}": "TiledCopy" for ending in ("", "_tv", "_A", "_B", "_C")},
    "make_tiled_mma": "TiledMma",
    "make_copy_atom": "CopyAtom",
    "make_mma_atom": "MmaAtom",
    "make_layout": "Layout",
    "make_ordered_layout": "Layout",
    "make_rmem_tensor": "Tensor",
    "make_buffer_tensor": "Tensor",
    "make_view": "Tensor",
    "make_fragment_like": "Tensor",
    "memref_load_vec": "Vector",
    "Vector": "Vector",
    "Vector.filled": "Vector",
    "Vector.from_elements": "Vector",
    "full": "Vector",
    "SharedAllocator": "SharedAllocator",
}
"""Result types of FlyDSL's functions, by name; class methods with their class."""

KEEPING = frozenset({"zipped_divide", "logical_divide", "flat_divide", "tiled_divide", "group", "slice"})
"""FlyDSL functions whose result has the type of their first argument, a tensor or a layout."""

METHOD_RESULTS = {
    **{("TiledCopy", name): "ThrCopy" for name in ("get_slice", "thr_slice")},
    **{("TiledMma", name): "ThrMma" for name in ("get_slice", "thr_slice")},
    **{("ThrCopy", name): "Tensor" for name in ("partition_S", "partition_D", "retile")},
    **{(f"{part}Mma", f"make_fragment_{name}"): "Tensor" for part in ("Tiled", "Thr") for name in "ABC"},
    **{("ThrMma", f"partition_{name}"): "Tensor" for name in "ABC"},
    ("Tensor", "load"): "Vector",
    **{("Vector", name): "Vector" for name in ("to", "bitcast", "reshape", "shuffle", "broadcast_to")},
    ("Vector", "reduce"): NUMERIC,
    **{("Vector", name): "Vector" for name in ("addf", "exp2", "maximumf", "minimumf", "rsqrt")},
    **{(NUMERIC, name): NUMERIC for name in ("addf", "exp2", "maximumf", "minimumf", "shuffle_xor")},
}
"""Result types of methods, by type and method."""

ENUMERATIONS = {
    "AddressSpace": frozenset({"Generic", "Global", "Shared", "Register"}),
    "GemmTraversalOrder": frozenset(
        f"{order}{ending}" for order in ("KMN", "KNM", "MKN", "MNK", "NKM", "NMK") for ending in ("", "_Serpentine")
    ),
    "ReductionOp": frozenset({"ADD", "MAX", "MIN", "MUL"}),
}
"""Members of FlyDSL's enumerations that are defined in compiled modules, or in classes that are not plain enumerations."""

_WORD = re.compile(r"(\w+)(?:\(([^)]*)\))?")


@cache
def attributes(kind: str) -> dict[str, Method | None]:
    """Return the attributes of a type, with the known parameters of methods; empty for a type that is not in the table."""
    return {match[1]: _params(match[2]) if match[2] is not None else None for match in _WORD.finditer(_TYPES[kind])}


@cache
def methods(word: str) -> dict[str, Method]:
    """Return the parameters of the methods of that name, by type."""
    found = {kind: attributes(kind).get(word) for kind in _TYPES}
    return {kind: params for kind, params in found.items() if params is not None}


@cache
def counts(word: str) -> frozenset[int]:
    """Return the numbers of positional arguments that some method of that name accepts."""
    found: set[int] = set()
    for params in methods(word).values():
        plain = [item for item in params if item.kind == "normal"]
        found |= set(range(sum(item.default is None for item in plain), len(plain) + 1))
    return frozenset(found)


@cache
def attributes_of_any(kinds: frozenset[str]) -> frozenset[str]:
    """Return the attributes that values of any of some types have."""
    return frozenset(word for kind in kinds if kind in _TYPES for word in attributes(kind))


def has_type(kind: str) -> bool:
    """Whether the table has a type."""
    return kind in TYPES


def _params(text: str) -> Method:
    words = [word.strip() for word in text.split(",") if word.strip()]
    cut = words.index("*") if "*" in words else len(words)
    plain = [_param(word, keyword=False) for word in words[:cut]]
    return (*plain, *(_param(word, keyword=True) for word in words[cut + 1 :]))


def _param(word: str, *, keyword: bool) -> Param:
    default = Expr("other", 0, 0) if word.endswith("=") else None
    return Param(word.rstrip("="), "kwonly" if keyword else "normal", 0, 0, 0, default=default)

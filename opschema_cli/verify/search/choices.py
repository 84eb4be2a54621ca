"""Values to try for the arguments of a schema, each with a cost: the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from opschema_cli.schema.operator_schema import Argument, SchemaType

Axes: TypeAlias = tuple[str, ...]
"""The axes of a tensor, by the names of their sizes."""

SIZES = ({"N": 64, "M": 32, "K": 16, "H": 4, "B": 2}, {"N": 512, "M": 128, "K": 256, "H": 8, "B": 2})
"""Sizes by their names, all different: small ones, and ones for kernels that want multiples of 128."""

UNSET = "<unset>"
"""Placeholder for the default of an argument."""

_FIRST: tuple[tuple[int, Axes], ...] = (
    (0, ("M", "N")),
    (1, ("N",)),
    (1, ("B", "M", "N")),
    (2, ("B", "H", "M", "N")),
    (4, ()),
    (5, ("B", "H", "K", "M", "N")),
)
RANKS = tuple(axes for _, axes in _FIRST)
"""The axes of a first tensor of each rank."""

DTYPES = ("float32", "bfloat16", "float16", "int64", "int8", "uint8")
"""Dtypes that kernels ask for."""

_INTEGRAL = re.compile(
    r"(^|_)(ids?|idx|index|indices|offsets?|lens?|lengths?|seqlens?|tables?|mapping|slots?|positions?|cu|labels?)(_|$)"
)
_POINTERS = re.compile(
    r"(^|_)((?:ind|row|col|group|seg|crow|ccol)_?ptrs?|ptrs?|offsets?|cu_?(?:seq_?)?lens?\w*|c(?:row|col)_indices|splits)(_|$)"
)
"""Names of tensors that say where parts of another one begin and end: `indptr`, `offsets`, `cu_seqlens`."""
_MASK = re.compile(r"(^|_)masks?(_|$)")
_VECTOR = re.compile(r"(^|_)(weights?|bias|gamma|beta|scales?|w|b|g)(_|$)")
_AXIS = re.compile(r"(^|_)(dims?|axis|axes)(_|$)")
_FLOATS = ("float32", "bfloat16", "float16", "float64")

_VALUES: dict[str, tuple[object, ...]] = {
    "bool": (False, True),
    "float": (1.0, 0.5, 0.0, 2.0, 1e-5),
    "Scalar": (2.0, 1.0, 0.5, 2),
    "number": (2.0, 1.0, 0.5, 2),
    "str": ("", "none", "mean", "sum"),
    "ScalarType": (
        *("torch.float32", "torch.bfloat16", "torch.float16", "torch.int64"),
        *("torch.int8", "torch.uint8", "torch.int32", "torch.bool"),
    ),
    "complex": (1.0,),
}


def is_tensor(kind: SchemaType) -> bool:
    """Whether it is a tensor, an optional one, or a list of tensors."""
    return kind.base == "Tensor"


def are_pointers(name: str) -> bool:
    """Whether a tensor of integers of this name says where parts of another one begin and end, in ascending order."""
    return _POINTERS.search(name) is not None


def is_index(name: str) -> bool:
    """Whether a tensor of this name holds indices, positions or numbers of elements."""
    return _INTEGRAL.search(name) is not None or are_pointers(name)


def shape_of(axes: Axes, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape with these axes: ``N+1`` is one more than ``N``, and ``1`` is one."""
    return tuple(sizes.get(axis.removesuffix("+1"), 1) + axis.endswith("+1") for axis in axes)


def first_shapes(argument: Argument) -> list[tuple[int, Axes]]:
    """The shapes of the first tensor."""
    if is_index(argument.name):
        return [(0, ("M",)), (1, ("M", "N")), (2, ("B", "M")), (3, ())]
    return list(_FIRST)


def further_shapes(argument: Argument, first: Axes) -> list[tuple[int, Axes]]:
    """The shapes of a tensor beside the first one, relative to that."""
    last = first[-1:]
    found: list[tuple[int, Axes]] = [(0, first)]
    if are_pointers(argument.name):
        found = [
            (0, ("K",)),
            *((cost, (f"{axis}+1",)) for cost, axis in ((0, "K"), *((1, name) for name in first[:1]))),
        ]
    elif is_index(argument.name):
        found = [(0, ("K",)), (1, first[:1]), (1, first), (2, ("B", "K")), (2, first[:2])]
    elif _VECTOR.search(argument.name):
        found = [(0, last), (1, first), (1, ("K", *last)), (1, (*last, "K")), (2, ("K",))]
        found += [(2, (*first[:-1], "1"))]
    found += [(1, last), (2, first[:1]), (3, ()), (2, (*last, "K")), (2, ("K", *last))]
    found += [(3, first[-2:]), (3, (*first[:-1], "K")), (3, (*first[:-2], "K", *last)), (3, first[:-1]), (3, ("K",))]
    found += [(3, (*first[:-2], *last, "K")), (4, first[:2]), (4, (*first, "K")), (5, ("B", *first))]
    cheapest: dict[Axes, int] = {}
    for cost, axes in found:
        if len(set(axes)) == len(axes):
            cheapest[axes] = min(cost, cheapest.get(axes, cost))
    return sorted(((cost, axes) for axes, cost in cheapest.items()), key=lambda item: item[0])


def dtypes(tensors: list[Argument]) -> list[tuple[int, dict[str, str]]]:
    """The dtypes of all tensors together: by their names first, then all alike, then one unlike the others."""
    hinted = {item.name: hinted_dtype(item.name) for item in tensors}
    found: list[tuple[int, dict[str, str]]] = [(0, {name: kind or "float32" for name, kind in hinted.items()})]
    found.append((2, {name: "int32" if kind == "int64" else kind or "float32" for name, kind in hinted.items()}))
    found += [(cost, dict.fromkeys(hinted, kind)) for cost, kind in ((1, "float32"), (2, "bfloat16"), (2, "float16"))]
    found += [
        (2, dict.fromkeys(hinted, "int64")),
        (3, dict.fromkeys(hinted, "int32")),
        (3, dict.fromkeys(hinted, "bool")),
    ]
    found += [
        (4, dict.fromkeys(hinted, "uint8")),
        (4, dict.fromkeys(hinted, "float64")),
        (4, dict.fromkeys(hinted, "int8")),
    ]
    if len(hinted) > 1:
        found += [(3, {**found[0][1], next(iter(hinted)): kind}) for kind in ("int8", "uint8")]
    for name in list(hinted)[1:]:
        found += [(3, {**dict.fromkeys(hinted, "float32"), name: kind}) for kind in ("int64", "bool", "int32")]
    return sorted(found, key=lambda item: item[0])


def other_floats(used: dict[str, str]) -> list[dict[str, str]]:
    """Return the same dtypes with every float32 replaced by another floating-point dtype."""
    floats = [kind for kind in used.values() if kind in _FLOATS]
    if not floats:
        return []
    lead = floats[0]
    others = (kind for kind in _FLOATS if kind != lead)
    return [{name: other if kind == lead else kind for name, kind in used.items()} for other in others]


Hints: TypeAlias = Mapping[str, Sequence[object]]
"""Likely values of arguments, by their names."""


def values(argument: Argument, sizes: dict[str, int], hints: Hints) -> list[tuple[int, object]] | None:
    """Return the values of a non-tensor argument, its default first and then the hints, or None if none can be made."""
    kind = argument.type
    start: list[tuple[int, object]] = [(0, UNSET)] if argument.default is not None else []
    if kind.optional and kind.inner is not None:
        start += [(0 if not start else 1, None)]
        kind = kind.inner
    base = len(start)
    inner = _list_values(kind, sizes) if kind.is_list else _plain_values(kind, argument.name, sizes)
    if inner is not None and (hinted := [value for value in hints.get(argument.name, ()) if _fits(kind, value)]):
        inner = (*hinted, *(value for value in inner if value not in hinted))
    if inner is None:
        return start or None
    return start + [(base + cost + (2 if start else 0), value) for cost, value in enumerate(inner)]


def _fits(kind: SchemaType, value: object) -> bool:
    if kind.is_list:
        inner = kind.inner
        return isinstance(value, list) and inner is not None and all(_fits(inner, item) for item in value)
    if isinstance(value, bool):
        return False
    if kind.base == "ScalarType":
        return isinstance(value, str) and value.startswith("torch.")
    number = kind.base in ("float", "Scalar", "number") and isinstance(value, int | float)
    return (
        number
        or (kind.base in ("int", "SymInt") and isinstance(value, int))
        or (kind.base == "str" and isinstance(value, str))
    )


def _plain_values(kind: SchemaType, name: str, sizes: dict[str, int]) -> tuple[object, ...] | None:
    if kind.base in ("int", "SymInt"):
        if _AXIS.search(name):
            return (-1, 0, 1)
        return (2, 1, sizes["N"], 0, sizes["M"], 4, 8, sizes["K"], -1, 32, 128)
    if kind.base == "str" and name.endswith("dtype"):
        return ("float32", "bfloat16", "float16")
    if kind.base == "Device":
        return ("cpu",)
    return _VALUES.get(kind.base)


def _list_values(kind: SchemaType, sizes: dict[str, int]) -> tuple[object, ...] | None:
    inner = kind.inner
    if inner is None or inner.is_list:
        return None
    lengths = (kind.size,) if kind.size else (1, 2, 0, 3)
    if inner.base in ("int", "SymInt"):
        own: tuple[object, ...] = () if kind.size else ([sizes["M"], sizes["N"]], [sizes["N"]], [-1])
        return (*own, *([value] * length for value in (1, 2) for length in lengths))
    plain = _plain_values(inner, "", sizes)
    return None if plain is None else tuple([value] * length for value in plain[:2] for length in lengths)


def hinted_dtype(name: str) -> str:
    """The dtype that the name of a tensor says; empty if it says none."""
    return "bool" if _MASK.search(name) else "int64" if is_index(name) else ""

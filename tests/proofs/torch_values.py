"""Values for the arguments of an operator's schema, and digests of what comes out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch

_ONE = torch.arange(6, dtype=torch.float32).reshape(2, 3) + 1
_OTHER = (torch.arange(6, dtype=torch.float32).reshape(2, 3) - 2) * 0.5
_LONGER = torch.arange(12, dtype=torch.float32).reshape(4, 3) + 3

BY_TYPE: dict[str, list[Any]] = {
    "Tensor": [_ONE, _OTHER, _LONGER],
    "int": [2, 3, 1],
    "SymInt": [2, 3, 1],
    "float": [0.5, 1.5, 3.0],
    "number": [2, 3, 0.5],
    "bool": [False, True],
    "str": ["mean", "no", ""],
    "Device": [torch.device("cpu"), torch.device("meta")],
    "ScalarType": [torch.float64, torch.float32, torch.int32],
    "List[int]": [[2, 3], [1, 2], [3]],
    "List[SymInt]": [[2, 3], [1, 2], [3]],
    "List[float]": [[0.5, 1.5], [2.0, 3.0]],
    "List[bool]": [[True, False], [False, True]],
    "List[number]": [[2, 0.5], [1, 3]],
    "List[Tensor]": [[_ONE, _OTHER], [_OTHER]],
    "List[Optional[Tensor]]": [[_ONE, None], [_OTHER]],
    "List[str]": [["mean"], ["no"]],
}
"""Values by the type of a schema."""


def know_members(texts: Iterable[str]) -> None:
    """Take the values of members, ``ADD = "add"``, in some texts for values of strings, too."""
    words = sorted({word for text in texts for word in re.findall(r"^ +\w+ = [\"'](\w+)[\"']\r?$", text, re.MULTILINE)})
    BY_TYPE["str"] = list(dict.fromkeys([*BY_TYPE["str"], *words]))


@cache
def _dtypes() -> dict[int, torch.dtype]:
    """Dtypes by the numbers that schemas have for them."""
    found = {}
    for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"):
        (argument,) = torch._C.parse_schema(f"f(ScalarType a={name}) -> int").arguments
        found[argument.default_value] = getattr(torch, name)
    return found


def _default(argument: Any) -> Any:
    """An argument's default as a function gets it."""
    value = argument.default_value
    return _dtypes().get(value, value) if "ScalarType" in str(argument.real_type) else value


def values(argument: Any) -> list[Any]:
    """Values for an argument of a schema: the first to call with, the others to see whether anything depends on it."""
    kind = str(argument.real_type)
    optional = kind.startswith("Optional[")
    known = BY_TYPE.get(kind[len("Optional[") : -1] if optional else kind, [])
    if argument.N is not None:
        known = [value for value in known if len(value) == argument.N] or [[2] * argument.N, [3] * argument.N]
    first = [_default(argument)] if argument.has_default_value() else []
    if optional and (not first or first[0] is not None):
        known = [None, *known]
    return [*first, *(value for value in known if not first or not _is_same(value, first[0]))] or [None]


def copied(value: Any) -> Any:
    """The value itself, or a tensor like it, so that no call sees the writes of another."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value.clone() if isinstance(value, torch.Tensor) else value


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return one is other
    return type(one) is type(other) and one == other


def flat(output: object) -> list[object]:
    """The returned values, one by one. A list of tensors counts as its tensors."""
    if isinstance(output, (tuple, list)):
        return [item for part in output for item in flat(part)]
    return [output]


def looks(output: object) -> str:
    """Number, shapes, dtypes and devices of what is returned."""
    return str(
        [
            (tuple(item.shape), str(item.dtype), item.device.type) if isinstance(item, torch.Tensor) else type(item)
            for item in flat(output)
        ]
    )


def digest(output: object) -> str:
    """Identifies the values that are returned."""
    parts = [
        f"{item.dtype}{tuple(item.shape)}{item.tolist()}" if isinstance(item, torch.Tensor) else repr(item)
        for item in flat(output)
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

"""Type promotion: the dtype that tensors and numbers have together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opschema_cli.evaluation.execution.values import TensorValue
from opschema_cli.evaluation.tensors.table import torch_table

_NUMBERS = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}


def promote(first: str, second: str) -> str | None:
    """The dtype of two dtypes; None if torch has none for them, or it is not known."""
    table = torch_table()
    return table.mapped(table.promotion[table.dtypes.index(first)], second) if first in table.dtypes else None


def number_dtype(number: object) -> str | None:
    """The dtype of a Python number."""
    return _NUMBERS.get(type(number))


def promoted(tensors: Sequence[TensorValue], numbers: Iterable[object] = ()) -> str | None:
    """The dtype of tensors and Python numbers together.

    Numbers, and then tensors without dimensions, count only where they are of a higher category: float over integer.
    """
    found: str | None = None
    for group in (
        [item.dtype for item in tensors if item.shape],
        [item.dtype for item in tensors if not item.shape],
        [number_dtype(item) for item in numbers],
    ):
        if group:
            lower = _joined(group)
            found = lower if found is None or lower is None else _combined(found, lower)
            if found is None:
                return None
    return found


def _joined(dtypes: Sequence[str | None]) -> str | None:
    found: str | None = None
    for index, dtype in enumerate(dtypes):
        if dtype is None:
            return None
        found = dtype if not index else promote(found, dtype) if found is not None else None
    return found


def _combined(higher: str, lower: str) -> str | None:
    if higher.startswith("complex"):
        return higher
    if is_floating(higher):
        return promote(higher, "complex32") if lower.startswith("complex") else higher
    if higher == "bool" or is_floating(lower) or lower.startswith("complex"):
        return promote(higher, lower)
    return higher


def is_floating(dtype: str) -> bool:
    """Whether a dtype is one of floating point numbers."""
    return dtype.startswith(("float", "bfloat"))

"""``torch.finfo`` and ``torch.iinfo``: the limits of a dtype, from the table."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller
from opschema_cli.evaluation.execution.values import DtypeValue
from opschema_cli.evaluation.tensors.promotion import is_floating
from opschema_cli.evaluation.tensors.table import torch_table

_DEFAULT_DTYPE = "float32"


class DtypeLimits(msgspec.Struct, frozen=True):
    """The limits of a dtype."""

    dtype: str


def finfo(call: Call) -> object:
    """``torch.finfo(dtype)``."""
    return _limits(call, floating=True)


def iinfo(call: Call) -> object:
    """``torch.iinfo(dtype)``."""
    return _limits(call, floating=False)


def _limits(call: Call, *, floating: bool) -> object:
    found = call.bound("type")
    dtype = (found or {}).get("type", DtypeValue(_DEFAULT_DTYPE) if floating else NOT_KNOWN)
    if found is None or not isinstance(dtype, DtypeValue):
        return NOT_KNOWN
    name = dtype.name
    if floating != (is_floating(name) or name.startswith("complex")) or name == "bool":
        call.throw("TypeError", f"torch.{'finfo' if floating else 'iinfo'}() does not take {name}")
    return DtypeLimits(name) if name in torch_table().limits else NOT_KNOWN


def limit(machine: Caller, value: DtypeLimits, name: str) -> object:
    """An attribute of the limits of a dtype."""
    if name == "dtype" and not value.dtype.startswith("complex"):
        return value.dtype
    found = torch_table().limits[value.dtype].get(name)
    return found if found is not None else machine.opaque(f"the limit `{name}` of `{value.dtype}`")

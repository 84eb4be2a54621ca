"""Arguments as Python values: dtype names become torch dtypes, lists become tuples, and tensors of a list become one list."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor


def typed(params: Mapping[str, object], tuples: Collection[str] = ()) -> dict[str, object]:
    """Params with dtypes for ``torch.float16`` and, where the name ends in ``dtype``, ``float16``; tuples for ``tuples``."""
    return {name: _as_tuple(value) if name in tuples else _typed(name, value) for name, value in params.items()}


def _as_tuple(value: object) -> object:
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) else value


def _typed(name: str, value: object) -> object:
    if not isinstance(value, str) or not (value.startswith("torch.") or name.endswith("dtype")):
        return value
    found = getattr(torch, value.removeprefix("torch."), None)
    return found if isinstance(found, torch.dtype) else value


def listed(tensors: Mapping[str, Tensor], lists: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """Tensors by the names of arguments: those of ``lists`` together, at the place of the first."""
    owners = {name: owner for owner, names in lists.items() for name in names}
    found: dict[str, object] = {}
    for name, tensor in tensors.items():
        found.setdefault(owners.get(name, name), tensor)
    return found | {owner: [tensors[name] for name in names] for owner, names in lists.items()}

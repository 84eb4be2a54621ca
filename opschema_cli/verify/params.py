"""Params as Python has them: the names of dtypes become torch dtypes."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def typed(params: Mapping[str, object]) -> dict[str, object]:
    """Params with dtypes for ``torch.float16`` and, where the name ends in ``dtype``, ``float16``."""
    return {name: _typed(name, value) for name, value in params.items()}


def _typed(name: str, value: object) -> object:
    if not isinstance(value, str) or not (value.startswith("torch.") or name.endswith("dtype")):
        return value
    found = getattr(torch, value.removeprefix("torch."), None)
    return found if isinstance(found, torch.dtype) else value

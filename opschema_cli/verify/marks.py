"""Elements of an output that have rules of their own: zeros of zeros, and what extreme inputs decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from opschema_cli.verify.model import Cell

ZERO, EXTREME = "zero:", "extreme:"
"""The beginnings of the names under which the reference's file holds these masks."""

_WITH_ZEROS = ("special", "ties", "zeros")


class Marks(NamedTuple):
    """Masks of one output: elements where an input of its shape is zero, so that the sign of a zero means something; and elements
    that depend on the largest numbers or on denormals, which one right form overflows and another does not.
    """

    zero: Tensor | None = None
    extreme: Tensor | None = None


def marks_of(reference: Mapping[str, Tensor], output: str) -> Marks:
    """The masks of an output in the file of a reference."""
    return Marks(reference.get(ZERO + output), reference.get(EXTREME + output))


def marked(
    cell: Cell,
    drawn: Mapping[str, Tensor],
    exact: Mapping[str, Tensor],
    compute: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
) -> dict[str, Tensor]:
    """The masks of all floating outputs, by name. ``exact`` are the outputs, ``compute`` the reference on other inputs."""
    floating = {name: y for name, y in exact.items() if y.is_floating_point()}
    found = _zeros(drawn, floating) if cell.values in _WITH_ZEROS else {}
    if cell.values != "special" or not any(bool(_extreme(tensor).any()) for tensor in drawn.values()):
        return found
    calm = compute({name: torch.where(_extreme(x), torch.ones_like(x), x) for name, x in drawn.items()})
    for name, y in floating.items():
        other = calm.get(name)
        if other is not None and other.shape == y.shape:
            found[EXTREME + name] = (y != other) & ~(y.isnan() & other.isnan())
    return found


def _zeros(drawn: Mapping[str, Tensor], floating: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name, y in floating.items():
        alike = [x.to(torch.float32) == 0 for x in drawn.values() if x.is_floating_point() and x.shape == y.shape]
        if alike:
            found[ZERO + name] = torch.stack(alike).any(0)
    return found


def _extreme(tensor: Tensor) -> Tensor:
    """The denormals and the finite numbers close to the largest."""
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor, dtype=torch.bool)
    info, magnitude = torch.finfo(tensor.dtype), tensor.to(torch.float64).abs()
    return (magnitude.isfinite() & (magnitude > info.max / 4)) | ((magnitude > 0) & (magnitude < info.smallest_normal))

"""Elements of an output with special rules: zeros computed from zeros, and elements that depend on extreme inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from opschema_cli.verify.model import Cell

ZERO, EXTREME, SCALE = "zero:", "extreme:", "scale"
"""The beginnings of the names under which the reference's file holds these masks, and the name of the inputs' largest magnitude."""

_SAMPLE = 1 << 14
_WITH_ZEROS = ("special", "ties", "zeros")


class Marks(NamedTuple):
    """Masks of one output: elements where an input of its shape is zero, so that the sign of a zero means something; and elements
    that depend on the largest numbers or on denormals, which one right form overflows and another does not. ``scale`` is the
    largest magnitude of the inputs: where all results cancel to zero, errors are measured by it.
    """

    zero: Tensor | None = None
    extreme: Tensor | None = None
    scale: float = 0.0


def marks_of(reference: Mapping[str, Tensor], output: str) -> Marks:
    """The masks of an output in the file of a reference."""
    scale = reference.get(SCALE)
    return Marks(reference.get(ZERO + output), reference.get(EXTREME + output), 0.0 if scale is None else float(scale))


def marked(
    cell: Cell,
    drawn: Mapping[str, Tensor],
    exact: Mapping[str, Tensor],
    compute: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
) -> dict[str, Tensor]:
    """Return the masks of all floating-point outputs by name. ``exact`` are the outputs, and ``compute`` runs the reference on
    other inputs. Elements that depend on extreme inputs change when NaN replaces those.
    """
    floating = {name: y for name, y in exact.items() if y.is_floating_point()}
    found = _zeros(drawn, floating, compute) if cell.values in _WITH_ZEROS else {}
    found[SCALE] = torch.tensor(max((_magnitude(x) for x in drawn.values()), default=0.0), dtype=torch.float64)
    if cell.values != "special" or not any(bool(_extreme(tensor).any()) for tensor in drawn.values()):
        return found
    tainted = compute(
        {name: x.masked_fill(_extreme(x), math.nan) if x.is_floating_point() else x for name, x in drawn.items()}
    )
    for name, y in floating.items():
        other = tainted.get(name)
        if other is not None and other.shape == y.shape:
            found[EXTREME + name] = (y != other) & ~(y.isnan() & other.isnan())
    return found


def _zeros(
    drawn: Mapping[str, Tensor],
    floating: Mapping[str, Tensor],
    compute: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
) -> dict[str, Tensor]:
    """Mark the zeros computed from zeros if their sign does not depend on other elements, as it would in a sum of neighbours or
    a sorted row. To find out, the reference is called again with ones in half of the elements and zeros elsewhere, where all
    zeros must stay the same.
    """
    found: dict[str, Tensor] = {}
    changed = compute({name: x.masked_fill(_half(x), 1) if x.is_floating_point() else x for name, x in drawn.items()})
    for name, y in floating.items():
        alike = [x.to(torch.float32) == 0 for x in drawn.values() if x.is_floating_point() and x.shape == y.shape]
        other = changed.get(name)
        if alike and other is not None and other.shape == y.shape:
            zeros = torch.stack(alike).any(0)
            same = (other == y) & (other.signbit() == y.signbit())
            if bool(same[zeros & (y == 0) & ~_half(y)].all()):
                found[ZERO + name] = zeros
    return found


def _half(tensor: Tensor) -> Tensor:
    """A mask of some half of the elements, the same for each shape."""
    return torch.rand(tensor.shape, generator=torch.Generator().manual_seed(0)) < 0.5


def _magnitude(tensor: Tensor) -> float:
    """The largest finite magnitude of a floating input, from evenly spread elements."""
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    flat = tensor.reshape(-1)
    sample = flat[:: max(flat.numel() // _SAMPLE, 1)].to(torch.float64).abs()
    return float(sample.masked_fill(~sample.isfinite(), 0.0).max())


def _extreme(tensor: Tensor) -> Tensor:
    """The denormals and the finite numbers close to the largest."""
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor, dtype=torch.bool)
    info, magnitude = torch.finfo(tensor.dtype), tensor.to(torch.float64).abs()
    return (magnitude.isfinite() & (magnitude > info.max / 4)) | ((magnitude > 0) & (magnitude < info.smallest_normal))

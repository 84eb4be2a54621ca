"""Large tensors in pieces: drawn, hashed and compared without copying an entire tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.compare import bits, is_nan
from opschema_cli.verify.elements import bytes_of
from opschema_cli.verify.inputs import bounded_inputs, make_input
from opschema_cli.verify.model import Cell

PERIOD = 1_048_583
"""Elements after which the values of an input repeat: a prime, so that no power of two leads from an element to an equal one."""

BLOCK = 1 << 24
"""Elements of a block that is hashed or compared at a time."""

_ULPS, _SHARE = 16.0, 2.0**-4


def draw_tiled(cell: Cell, device: str) -> dict[str, Tensor]:
    """The inputs of a cell on a device, each drawn once and repeated. Raises ValueError if they cannot be drawn."""
    return {name: tiled(tile, shape, device) for name, (tile, shape) in tiles(cell).items()}


def tiles(cell: Cell) -> dict[str, tuple[Tensor, tuple[int, ...]]]:
    """The tile that each input repeats, with the input's shape."""
    found = {}
    for spec in bounded_inputs(cell.call.inputs):
        few = msgspec.structs.replace(spec, shape=(min(math.prod(spec.shape), PERIOD),))
        found[spec.name] = (make_input(few, cell, cell.values), spec.shape)
    return found


def tiled(tile: Tensor, shape: tuple[int, ...], device: str) -> Tensor:
    """A contiguous tensor of a shape whose elements repeat those of a tile."""
    whole = torch.empty(math.prod(shape), dtype=tile.dtype, device=device)
    tile = tile.to(device)
    if len(tile):
        full = len(whole) // len(tile) * len(tile)
        whole[:full].view(-1, len(tile)).copy_(tile)
        whole[full:].copy_(tile[: len(whole) - full])
    return whole.view(shape)


def is_tiled(tensor: Tensor, tile: Tensor) -> bool:
    """Whether a contiguous tensor still has the elements of :func:`tiled`, bit by bit."""
    flat, tile = bits(tensor).view(-1), bits(tile.to(tensor.device))
    starts = range(0, len(flat), max(len(tile), 1))
    return all(torch.equal(flat[start : start + len(tile)], tile[: len(flat) - start]) for start in starts)


def block_hashes(tensor: Tensor) -> tuple[str, ...]:
    """A hash of each block of a tensor's elements as bits, in their order; all NaN are the same."""
    return tuple(_hash(block) for _, block in blocks(tensor.contiguous()))


def blocks(tensor: Tensor) -> Iterator[tuple[int, Tensor]]:
    """The blocks of a contiguous tensor, with the index of their first element."""
    flat = tensor.view(-1)
    for start in range(0, len(flat), BLOCK):
        yield start, flat[start : start + BLOCK]


def unlike(one: Tensor, other: Tensor) -> tuple[int, int]:
    """Return the number of elements in which two parts of one shape differ, and the flat index of the first one, or -1 if there is
    none.

    Floating numbers may differ by a little of the largest one of the part: how many rows a call has may decide how a product is
    summed, and a wrong index gives quite another number.
    """
    if torch.equal(bits(one.contiguous()), bits(other.contiguous())):
        return 0, -1
    if not one.is_floating_point():
        differ = one != other
    else:
        a, b = one.to(torch.float64), other.to(torch.float64)
        finite = b.isfinite()
        bound = _slack(one.dtype) * float(b[finite].abs().max()) if finite.any() else 0.0
        differ = ~((a == b) | (is_nan(a) & is_nan(b)) | ((a - b).abs() <= bound))
    count = int(differ.count_nonzero())
    return count, int(differ.reshape(-1).to(torch.uint8).argmax()) if count else -1


def _slack(dtype: torch.dtype) -> float:
    """Return the tolerance as a part of the largest number: 16 ulp, but no more than a sixteenth or, in 8-bit dtypes, one ulp."""
    eps = torch.finfo(dtype).eps
    return min(_ULPS * eps, max(eps, _SHARE))


def same_everywhere(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether the tensors of two calls have the same names, shapes, dtypes, and elements in the sense of :func:`unlike`."""
    return one.keys() == other.keys() and all(
        y.shape == other[name].shape and y.dtype is other[name].dtype and not unlike(y, other[name])[0]
        for name, y in one.items()
    )


def _hash(block: Tensor) -> str:
    hashed, numbers = blake2b(digest_size=16), bits(block)
    if block.is_floating_point() and bool((lost := is_nan(block)).any()):
        numbers = numbers.masked_fill(lost, 0)
        hashed.update(bytes_of(lost.cpu()))
    hashed.update(bytes_of(numbers.cpu()))
    return hashed.hexdigest()

"""Tensors as elements: their parts and places."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import torch
from torch import Tensor

CHUNK = 1 << 15
"""Elements at a time: few enough to stay in the cache, and for torch to do without threads, which workers would fight over."""


def chunks(*tensors: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """Parts of flattened tensors of one shape, with the index of their first element."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), CHUNK):
        yield start, tuple(tensor[start : start + CHUNK] for tensor in flat)


def unravel(index: int, shape: torch.Size) -> tuple[int, ...]:
    """The place of an element, counted through a tensor of a shape."""
    at: list[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        at.append(place)
    return tuple(reversed(at))


def bytes_of(tensor: Tensor) -> ctypes.Array[ctypes.c_char]:
    """The bytes of a contiguous tensor on the CPU, sharing its memory, as hashes take them; numpy may be missing."""
    return (ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())

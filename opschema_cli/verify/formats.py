"""Floating point formats of dtypes: their steps, limits and overflow."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_EXPONENT = 0x7FF0_0000_0000_0000


class Format:
    """A binary floating point format."""

    def __init__(self, dtype: torch.dtype) -> None:
        info = torch.finfo(dtype)
        self.eps, self.least, self.largest = info.eps, info.smallest_normal, info.max
        self.top = 2.0 ** math.floor(math.log2(info.max)) if info.max < 2.0**1023 else 2.0**1023
        self.double = dtype is torch.float64
        self.saturates = info.bits == 8

    @property
    def overflow(self) -> float:
        """The least number that rounds to infinity."""
        return self.largest if self.double else self.largest + self.top * self.eps / 2

    def holds(self, numbers: Tensor) -> bool:
        """Whether none is NaN or beyond the largest number."""
        return float(numbers.abs().max()) <= self.largest

    def ulp(self, reference: Tensor) -> Tensor:
        """The distance of neighbouring numbers at float64 numbers, exactly: that of the denormals below the least normal number,
        that of the largest numbers above the largest, and at a power of two the distance to the next number up.
        """
        powers = (reference.view(torch.int64) & _EXPONENT).view(torch.float64)
        return powers.clamp_(self.least, self.top).mul_(self.eps)

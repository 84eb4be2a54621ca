"""Results of repeated calls of an op that is not deterministic: their spread, and whether a result is within it.

A second side is excused only as far as the side before differs from itself: twice the largest spread of the output beyond its
smallest and largest results, and one ulp more where the results vary at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.compare import differing, parts
from opschema_cli.verify.formats import Format
from opschema_cli.verify.model import Finding

LOW, HIGH = "low:", "high:"
"""The beginnings of the names of the smallest and largest results."""

_SECONDS = 3.0
_WIDER = 2.0


class Spread(msgspec.Struct):
    """The results of several calls: by output the smallest and largest of each element, and those that varied."""

    low: dict[str, Tensor] = {}
    high: dict[str, Tensor] = {}
    varied: set[str] = msgspec.field(default_factory=set)
    calls: int = 0

    def add(self, outputs: Mapping[str, Tensor]) -> None:
        """Take in the results of one more call."""
        self.calls += 1
        for name, tensor in outputs.items():
            y = _comparable(tensor)
            if name not in self.low:
                self.low[name], self.high[name] = y, y.clone()
            elif self.low[name].shape != y.shape or self.low[name].dtype != y.dtype:
                self.varied.add(name)
            else:
                if any(differing(y, known[name])[0] for known in (self.low, self.high)):
                    self.varied.add(name)
                self.low[name] = torch.minimum(self.low[name], y)
                self.high[name] = torch.maximum(self.high[name], y)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save in the result file."""
        names = sorted(self.varied)
        return {**{LOW + name: self.low[name] for name in names}, **{HIGH + name: self.high[name] for name in names}}

    def findings(self, side: str) -> list[Finding]:
        """The outputs that varied: ``repeat``."""
        message = "`{}`: {} calls with the same inputs did not give the same bits"
        return [
            Finding(check="repeat", side=side, about=name, message=message.format(name, self.calls))
            for name in sorted(self.varied)
        ]


def measure(call: Callable[[], Mapping[str, Tensor]], calls: int) -> Spread:
    """The spread of so many calls, or of as many as a few seconds allow."""
    found, started = Spread({}, {}), time.monotonic()
    for _ in range(calls):
        found.add(call())
        if time.monotonic() - started > _SECONDS:
            break
    return found


def within(before: Mapping[str, Tensor], after: Mapping[str, Tensor], names: set[str]) -> str:
    """The explanation of a difference in these outputs, if all of after's results lie in the spread of before; else nothing.

    Both hold outputs by name and, for those that vary, ``low:`` and ``high:``.
    """
    widths = [_width(before, after, name) for name in names]
    if not names or any(width is None for width in widths):
        return ""
    largest = max(width for width in widths if width is not None)
    return f"before differs from itself by up to {largest:.3g}, and after from it by no more than that allows"


def _width(before: Mapping[str, Tensor], after: Mapping[str, Tensor], name: str) -> float | None:
    """The spread of an output of before, if after lies in it."""
    if LOW + name not in before or name not in after:
        return None
    low, high = (before[kind + name].to(torch.float64) for kind in (LOW, HIGH))
    least, most = (after.get(kind + name, _comparable(after[name])).to(torch.float64) for kind in (LOW, HIGH))
    if low.shape != least.shape or not low.numel():
        return None
    spread = (high - low).nan_to_num(0.0, 0.0, 0.0)
    width = float(spread.max())
    room = _WIDER * width * (width > 0) + _step(before[LOW + name], high)
    inside = (
        ((least >= low - room) & (most <= high + room))
        | ((least == low) & (most == high))
        | (least.isnan() & low.isnan())
    )
    return width if bool(inside.all()) else None


def _step(tensor: Tensor, magnitudes: Tensor) -> Tensor | float:
    """One ulp at each element."""
    if not tensor.is_floating_point():
        return 0.0
    return Format(tensor.dtype).ulp(magnitudes.nan_to_num(0.0, 0.0, 0.0))


def _comparable(tensor: Tensor) -> Tensor:
    """A copy of a dtype that torch can take the smaller one of; of complex numbers, their parts."""
    if tensor.dtype is torch.bool:
        return tensor.to(torch.uint8)
    if tensor.is_floating_point() and tensor.element_size() == 1:
        return tensor.to(torch.float32)
    return parts(tensor).clone()


def comparable_as(extreme: Tensor, output: Tensor) -> Tensor:
    """The smallest or largest results of an output in its own dtype."""
    return torch.view_as_complex(extreme) if output.is_complex() else extreme.to(output.dtype)

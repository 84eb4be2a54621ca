"""Values in messages: renders any value of an expression or a file with bounded length and time."""

from __future__ import annotations

import reprlib
from typing import Any

from opschema_cli.phrases import clipped
from opschema_cli.schema.values import Tensor, Value

MAX_SHOWN = 600
"""Characters of one value."""

_MAX_PARTS = 200
"""Values inside of one value that are written."""


def describe(value: Value) -> str:
    """``value`` in a few words, however large, deep or long it is; parts that it shares count each time."""
    return clipped(_Describer().repr(value), MAX_SHOWN)


class _Describer(reprlib.Repr):
    """Bounds each level of a value, as :class:`reprlib.Repr` does, and the parts of all levels together."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = 12
        self.maxstring = self.maxother = 80
        self.left = _MAX_PARTS

    def repr1(self, x: Any, level: int) -> str:
        self.left -= 1
        return super().repr1(x, level) if self.left >= 0 else "..."

    def repr_int(self, value: int, level: int) -> str:
        bits = value.bit_length()
        return str(value) if bits < 256 else f"an integer of {bits} bits"

    def repr_type(self, value: type, level: int) -> str:
        return value.__name__

    def repr_Tensor(self, value: Tensor, level: int) -> str:  # noqa: N802 - reprlib looks it up so
        return "a tensor" if value.shape is None else f"a tensor of shape {self.repr1(value.shape, level)}"

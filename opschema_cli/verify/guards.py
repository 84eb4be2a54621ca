"""Guard bands: memory around an op's allocations and inputs that no kernel may touch.

Tensors that Python code asks torch for (``torch.empty`` and its kin) get bands of a known byte before and behind them, so that
what is written there neither harms the process nor stays unseen. What a C++ extension or torch itself allocates has none; a
sanitizer sees that too (:mod:`opschema_cli.verify.sanitizers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.checks import changed, snapshot
from opschema_cli.verify.devices import Function, call_on
from opschema_cli.verify.inputs import place, storage_bytes
from opschema_cli.verify.loading import ITS_OWN
from opschema_cli.verify.model import Call, Finding

BAND = 256
"""Bytes on either side: so many that a tensor is aligned as torch aligns its own."""

_BYTE = 0xA5
_FACTORIES: tuple[tuple[object, str], ...] = (
    *((torch, f"{kind}{form}") for kind in ("empty", "zeros", "ones", "full") for form in ("", "_like")),
    *((Tensor, f"new_{kind}") for kind in ("empty", "zeros", "ones", "full", "empty_strided")),
    (torch, "empty_strided"),
)


class Bands(msgspec.Struct):
    """The storages that have bands."""

    storages: list[Tensor] = msgspec.field(default_factory=list)
    _busy: bool = False

    def around(self, function: Function) -> Function:
        """Wrap the function so that its allocations get guard bands."""

        def inside(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            with self._replaced():
                return function(tensors)

        return inside

    def findings(self, side: str) -> list[Finding]:
        """Writes into the guard bands since they were made: ``overrun``."""
        broken = [count for storage in self.storages if (count := _written(storage))]
        message = "the call wrote {} bytes beyond the memory of a tensor that it allocated"
        return [Finding(check="overrun", side=side, message=message.format(count)) for count in broken]

    @contextmanager
    def _replaced(self) -> Iterator[None]:
        """Torch's modes do not reach into the kernels of custom operators, so its functions are replaced meanwhile."""
        kept = [(owner, name, getattr(owner, name)) for owner, name in _FACTORIES]
        for owner, name, function in kept:
            setattr(owner, name, self._banding(function))
        try:
            yield
        finally:
            for owner, name, function in kept:
                setattr(owner, name, function)

    def _banding(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @wraps(function)
        def make(*args: object, **kwargs: object) -> Tensor:
            made = function(*args, **kwargs)
            if self._busy or torch.compiler.is_compiling() or "out" in kwargs or not _plain(made):
                return made
            self._busy = True
            try:
                tensor = with_bands(made)
                self.storages.append(storage_bytes(tensor))
            finally:
                self._busy = False
            return tensor

        return make


def banded(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of tensors, each between two bands."""
    return {name: with_bands(tensor) for name, tensor in tensors.items()}


def with_bands(tensor: Tensor) -> Tensor:
    """A copy of a tensor, gaps of its storage included, between two bands."""
    old = storage_bytes(tensor)
    new = old.new_empty(old.numel() + 2 * BAND).fill_(_BYTE)
    new[BAND : BAND + old.numel()] = old
    offset = tensor.storage_offset() + BAND // tensor.element_size()
    return tensor.detach().set_(new.untyped_storage(), offset, tensor.shape, tensor.stride())


def _plain(made: object) -> bool:
    """Whether a tensor is a plain strided one."""
    if type(made) is not Tensor or made.layout is not torch.strided or made.requires_grad:
        return False
    return made.device.type in ("cpu", "cuda") and not made.is_quantized and not made.is_pinned()


def _written(storage: Tensor) -> int:
    return int((storage[:BAND] != _BYTE).count_nonzero()) + int((storage[-BAND:] != _BYTE).count_nonzero())


def banded_call(device: str, function: Function, drawn: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The outputs of a call in guard bands."""
    return call_on(device, Bands().around(function), banded(drawn))[1]


def guarded_call(
    call: Call, device: str, function: Function, drawn: Mapping[str, Tensor], side: str
) -> tuple[dict[str, Tensor], list[Finding]]:
    """Return the outputs of a call in guard bands, and its writes around its inputs and allocations."""
    bands, around = Bands(), banded(drawn)
    try:
        tensors, outputs = call_on(device, bands.around(function), around)
    except (*ITS_OWN, MemoryError):  # the calls without bands tell what is the matter
        return {}, []
    beyond = [f for f in changed(tensors, snapshot(place(around, device)), call, side) if f.check == "input-overrun"]
    return outputs, [*bands.findings(side), *beyond]

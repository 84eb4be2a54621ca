"""Devices for calls: the CPU, directly; a GPU, on a separate stream after a kernel that sleeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

from opschema_cli.verify.inputs import place, storage_bytes
from opschema_cli.verify.precision import full_precision

Function = Callable[[dict[str, Tensor]], dict[str, Tensor]]

_SLEEP_CYCLES = 10_000_000
_UNUSED = 1 << 30
_SEED = 0x5EED_CA11
"""A seed that ops are unlikely to use, so that a call that seeds the generators itself changes their state."""
_NO_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|out of memory|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE
)


def call_on(
    device: str, function: Function, drawn: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Call a function with fresh copies of inputs on a device. Return the copies and the results when their computation has
    finished.

    On a GPU the copies are filled late, on a side stream: an op that does not use the current stream reads what was there before,
    NaN. Nothing waits for the device in between.
    """
    if torch.device(device).type == "cuda":
        with torch.cuda.device(device):
            return side_stream(device).call(function, drawn)
    _reset()
    tensors = place(drawn, device)
    return tensors, function(tensors)


def _reset() -> None:
    torch.manual_seed(_SEED)
    full_precision()


class SideStream:
    """The stream on which this process calls its op. It is the same for all calls, so that the op's memory comes from one pool."""

    def __init__(self, device: str) -> None:
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._device = device
        self._waits = False

    def call(self, function: Function, drawn: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Call a function behind a kernel that sleeps. Repeat the call if the kernel ended before the call returned, for example
        because of compilation. For an op that synchronizes with the device itself, later calls are not repeated.
        """
        tensors, outputs, asleep = self._behind_sleep(function, drawn)
        if not asleep and not self._waits:
            tensors, outputs, asleep = self._behind_sleep(function, drawn)
            self._waits = not asleep
        return tensors, outputs

    def _behind_sleep(
        self, function: Function, drawn: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], bool]:
        _reset()
        filled, tensors = place(drawn, self._device), place(drawn, self._device)
        for tensor in tensors.values():
            storage_bytes(tensor).fill_(0xFF if tensor.is_floating_point() else 0)
        torch.cuda.synchronize()
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(_SLEEP_CYCLES)  # type: ignore[no-untyped-call]
            for name, tensor in tensors.items():
                storage_bytes(tensor).copy_(storage_bytes(filled[name]), non_blocking=True)
            copied.record()
            outputs = function(tensors)
            asleep = not copied.query()  # type: ignore[no-untyped-call]
        self.stream.synchronize()
        torch.cuda.synchronize()
        return tensors, outputs, asleep


@cache
def side_stream(device: str) -> SideStream:
    """The side stream of a GPU."""
    return SideStream(device)


def pool_of_calls(device: str | torch.device) -> AbstractContextManager[object]:
    """Within it, memory comes from the pool that calls of an op take theirs from: a GPU has one for each stream."""
    if torch.device(device).type != "cuda":
        return nullcontext()
    return torch.cuda.stream(side_stream(str(device)).stream)


def release_memory(device: str) -> None:
    """Give unused memory of a GPU back if it is much: other processes, which run the other sides, need it too."""
    if torch.device(device).type == "cuda" and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        if unused > _UNUSED:
            torch.cuda.empty_cache()


def second_device(device: str) -> str:
    """Return another GPU, or an empty text if there is none."""
    return "cuda:1" if torch.device(device).type == "cuda" and torch.cuda.device_count() > 1 else ""


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory is out; the CPU's allocator has no type of its own for it."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None


def context_lost(device: str) -> bool:
    """Whether no further kernel can run in this process: a CUDA error sticks."""
    if torch.device(device).type != "cuda":
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False

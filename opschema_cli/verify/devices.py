"""Devices that calls run on: the CPU, directly; a GPU, on a stream of its own, behind a kernel that sleeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from opschema_cli.verify.inputs import place, storage_bytes
from opschema_cli.verify.precision import full_precision

Function = Callable[[dict[str, Tensor]], dict[str, Tensor]]

_SLEEP_CYCLES = 10_000_000
_NO_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|out of memory|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE
)


def call_on(
    device: str, function: Function, drawn: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Call a function with fresh copies of inputs on a device; the copies and what it returned, all of it computed.

    On a GPU the copies are filled late, on a side stream: an op that does not use the current stream reads what was there before,
    NaN. Nothing waits for the device in between.
    """
    torch.manual_seed(0)
    full_precision()
    if torch.device(device).type != "cuda":
        tensors = place(drawn, device)
        return tensors, function(tensors)
    with torch.cuda.device(device):
        return _behind_sleep(function, place(drawn, device))


def _behind_sleep(function: Function, filled: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    tensors = place(filled, next(iter(filled.values())).device) if filled else {}
    for tensor in tensors.values():
        storage_bytes(tensor).fill_(0xFF if tensor.is_floating_point() else 0)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        torch.cuda._sleep(_SLEEP_CYCLES)  # type: ignore[no-untyped-call]
        for name, tensor in tensors.items():
            storage_bytes(tensor).copy_(storage_bytes(filled[name]), non_blocking=True)
        outputs = function(tensors)
    stream.synchronize()
    torch.cuda.synchronize()
    return tensors, outputs


def second_device(device: str) -> str:
    """Another GPU, empty if there is none."""
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

"""The place where a registered kernel runs, from its dispatch key or the name of its device."""

from __future__ import annotations

import re
from typing import Literal

from opschema_cli.verify.plan_names import BACKEND

Where = Literal["here", "cuda", "backend", "elsewhere"]
"""On the CPU or anywhere; on a GPU of CUDA or ROCm; on the device that a backend adds to torch; on another device."""

_FUNCTIONALITY = r"(?:autograd|autocast|sparse|sparsecsr|quantized|nestedtensor)?"
_CUDA = re.compile(rf"{_FUNCTIONALITY}(?:cuda|hip)", re.IGNORECASE)
_BACKEND = re.compile(rf"{_FUNCTIONALITY}(?:{BACKEND}|privateuseone)", re.IGNORECASE)
_ELSEWHERE = re.compile(
    rf"{_FUNCTIONALITY}(?:xpu|mps|hpu|xla|ipu|mtia|maia|lazy|ve|vulkan|fpga|privateuse[23])", re.IGNORECASE
)
_ANYWHERE = ("cpu", "meta", "default")


def where(key: str) -> Where:
    """Return where a kernel for this key runs. If torch has no device with this name, it is a backend's: ``npu``."""
    if _CUDA.fullmatch(key):
        return "cuda"
    if _ELSEWHERE.fullmatch(key):
        return "elsewhere"
    is_device = key == key.lower() and key not in _ANYWHERE
    return "backend" if is_device or _BACKEND.fullmatch(key) else "here"

"""Packages that provide nvcc and compute-sanitizer where they are missing: ``python -m tests.verify.cuda_packages`` prints them.

What a driver cannot run is left out: those packages exist for CUDA 13 and later, and kernels of a newer release than the driver's
need not load. The tests that need them are skipped then.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_FIRST = 13
_PACKAGES = {
    "nvcc": ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime"),
    "compute-sanitizer": ("nvidia-cuda-sanitizer-api",),
}
_UNBOUND = "nvidia-cuda-cccl"
"""Headers that nvcc needs, whose releases are numbered otherwise."""

_USUAL = "/usr/local/cuda/bin"


def driver_cuda() -> tuple[int, int] | None:
    """The release of CUDA that the driver supports; None if there is no driver."""
    version = ctypes.c_int()
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)):
            return None
    except OSError:
        return None
    return version.value // 1000, version.value % 1000 // 10


def packages(supported: tuple[int, int] | None, installed: Iterable[str]) -> list[str]:
    """The requirements for the tools that are not ``installed``, of releases that a driver supports."""
    if supported is None or supported[0] < _FIRST:
        return []
    missing = [tool for tool in _PACKAGES if tool not in set(installed)]
    bound = f">={_FIRST},<{supported[0]}.{supported[1] + 1}"
    found = [name + bound for tool in missing for name in _PACKAGES[tool]]
    return [*found, *([_UNBOUND] if "nvcc" in missing else [])]


def _installed() -> Iterator[str]:
    return (tool for tool in _PACKAGES if shutil.which(tool) or (Path(_USUAL) / tool).exists())


if __name__ == "__main__":
    supported = driver_cuda()
    found = packages(supported, _installed())
    if supported is not None and supported[0] < _FIRST:
        print(f"the driver supports CUDA {supported[0]}.{supported[1]}: no nvcc is installed", file=sys.stderr)
    print(" ".join(found))

"""Packages that provide nvcc and compute-sanitizer where they are missing: ``python -m tests.verify.cuda_packages`` prints them.

What a driver cannot run is left out: nvcc is packaged for CUDA 13 and later, and kernels of a newer release than the driver's need
not load. The tests that need them are skipped then. With ``--wheels`` it prints what the tests need besides torch and these.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_FIRST = 13
_SANITIZER_12 = "nvidia-cuda-sanitizer-api-cu12"
"""compute-sanitizer alone is packaged for CUDA 12, too."""

_TESTS = ("hatchling", "hypothesis")
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
    if supported is None or supported[0] < _FIRST - 1:
        return []
    missing = [tool for tool in _PACKAGES if tool not in set(installed)]
    if supported[0] < _FIRST:
        return [f"{_SANITIZER_12}<12.{supported[1] + 1}"] if "compute-sanitizer" in missing else []
    bound = f">={_FIRST},<{supported[0]}.{supported[1] + 1}"
    found = [name + bound for tool in missing for name in _PACKAGES[tool]]
    return [*found, *([_UNBOUND] if "nvcc" in missing else [])]


def _installed() -> Iterator[str]:
    return (tool for tool in _PACKAGES if shutil.which(tool) or (Path(_USUAL) / tool).exists())


def wheels(project: Mapping[str, Any], requirements: Iterable[str]) -> list[str]:
    """What is installed for the tests but torch, by the ``project`` table of pyproject.toml, and the ``requirements`` of tests."""
    own = [item for item in requirements if item.startswith(_TESTS)]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["verify"], *own]
    # hatchling asks for the first when it installs a checkout; torch for a newer setuptools than that of a virtual environment
    wanted += ["editables", "setuptools"]
    return [item.partition(";")[0].replace(" ", "") for item in wanted if not item.startswith("torch")]


if __name__ == "__main__" and "--wheels" in sys.argv:
    import tomllib

    declared = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(" ".join(wheels(declared, declared["optional-dependencies"]["test"])))
elif __name__ == "__main__":
    supported = driver_cuda()
    found = packages(supported, _installed())
    if supported is not None and supported[0] < _FIRST:
        print(f"the driver supports CUDA {supported[0]}.{supported[1]}: no nvcc is installed", file=sys.stderr)
    print(" ".join(found))

"""Workers under a sanitizer: AddressSanitizer for kernels that a compiler makes for the CPU, compute-sanitizer for CUDA's.

AddressSanitizer sees only what was compiled with it: how an op library passes ``-fsanitize=address`` to its compiler is its own
matter (``TILEKIT_CXXFLAGS`` is tilekit's variable; ``CXXFLAGS`` is set, too). Its runtime must be loaded before Python, and
libstdc++ with it, whose functions it looks up when it starts. compute-sanitizer, which sees all kernels, is in
:mod:`opschema_cli.verify.compute_sanitizer`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.compute_sanitizer import Tool, compute_sanitizer

EXIT_CODE = 97
"""The exit status of a process that a sanitizer ended."""

SANITIZED = "OPSCHEMA_SANITIZED"
"""The environment variable by which a worker knows that it runs under one, and which tool's work it does."""

_FLAGS = "-O1 -g1 -fsanitize=address -fno-omit-frame-pointer"
_FLAG_VARIABLES = ("CXXFLAGS", "TILEKIT_CXXFLAGS")
_ASAN = re.compile(
    r"ERROR: AddressSanitizer: (?P<what>[\w-]+).*?^(?P<access>(?:READ|WRITE) of size \d+).*?\n(?P<stack>(?: +#\d.*\n)+)",
    re.DOTALL | re.MULTILINE,
)
_FRAME = re.compile(r"(?:#\d+ \S+ in|at) (?P<function>.+?)(?: in)? (?P<file>/\S+?):(?P<line>\d+)")
_FRAMES = 4


def under_sanitizer(tool: Tool, environ: Mapping[str, str], log: Path | None) -> tuple[list[str], dict[str, str]]:
    """The prefix of a worker's command, and its environment. With ``log``, to which it writes, it is compute-sanitizer's tool; else
    AddressSanitizer.

    Raises:
        OpschemaError: there is no such sanitizer here.
    """
    environ = {**environ, SANITIZED: tool}
    if log is not None:
        return compute_sanitizer(tool, environ, log)
    if tool != "memcheck":
        raise OpschemaError(f"{tool} needs a GPU: kernels on the CPU run under AddressSanitizer only, like memcheck")
    return [], _address_sanitizer(environ)


def check_sanitizer(tool: Tool, device: str) -> None:
    """Check that there is a sanitizer for a device, ``cpu`` or ``cuda``.

    Raises:
        OpschemaError: there is none.
    """
    under_sanitizer(tool, os.environ, Path(os.devnull) if device == "cuda" else None)


def summary(said: str) -> str:
    """The report of AddressSanitizer in a process's last output: a line, then a place a line; empty if it reports nothing."""
    found = _ASAN.search(said)
    return f"{found['what']}, {found['access']}{_places(found['stack'])}" if found is not None else ""


def _places(stack: str) -> str:
    """The innermost frames whose files are known."""
    frames = [f"{Path(frame['file']).name}:{frame['line']} in {frame['function']}" for frame in _FRAME.finditer(stack)]
    return "".join(f"\nat {frame}" for frame in frames[:_FRAMES])


def _address_sanitizer(environ: Mapping[str, str]) -> dict[str, str]:
    libraries = [_library(name, environ) for name in ("libasan.so", "libstdc++.so")]
    options = f"detect_leaks=0:exitcode={EXIT_CODE}:handle_segv=0:allocator_may_return_null=1"
    flags = {name: " ".join(filter(None, (environ.get(name), _FLAGS))) for name in _FLAG_VARIABLES}
    loaded = " ".join(filter(None, (*libraries, environ.get("LD_PRELOAD"))))
    return {**environ, **flags, "LD_PRELOAD": loaded, "ASAN_OPTIONS": options}


def _library(name: str, environ: Mapping[str, str]) -> str:
    """The path of a library of the compiler's.

    Raises:
        OpschemaError: there is no g++, or it has none.
    """
    compiler = shutil.which(environ.get("CXX", "g++"), path=environ.get("PATH"))
    if compiler is not None:
        done = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        path = Path(done.stdout.strip())
        if path.is_absolute() and path.is_file():
            return str(path.resolve())
    raise OpschemaError(f"--sanitizer on a CPU needs g++ with AddressSanitizer; {name} is not found")

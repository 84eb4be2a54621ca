"""NVIDIA's compute-sanitizer around a worker: its command line and its reports.

It writes to a log file of its own: by default it prints to standard output, which is the pipe that a worker answers on. memcheck
ends the CUDA context at an error; the other tools report and let the kernel go on, so the log is read after each cell.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from opschema_cli.errors import OpschemaError

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
"""A tool of compute-sanitizer. On a CPU only memcheck has a counterpart, AddressSanitizer."""

TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")

_PATIENCE = 0.1
"""Seconds that a report may take to be written after the kernel has ended."""

UNSUPPORTED = "Device not supported"
"""Its report on a GPU or a virtual machine that it does not support, where it checks nothing."""

_UNCACHED = ("memcheck", "initcheck")
"""Tools that track allocations. Torch's caching allocator would hide accesses outside a tensor or to uninitialized memory."""

_BESIDE_PYTHON = ("nvidia/*/compute-sanitizer/compute-sanitizer", "nvidia/*/bin/compute-sanitizer")
_USUAL = "/usr/local/cuda/bin"
_REPORT = re.compile(
    r"^=+ (?P<what>"
    r"Invalid \S+ (?:read|write|atomic) of size \d+ bytes?"
    r"|Uninitialized \S+ memory read of size \d+(?: bytes?)?"
    r"|Uninitialized access at .+"
    r"|Potential invalid \S+ (?:read|write|atomic) of size \d+ bytes?"
    r"|Host API memory access error at .+"
    r"|Barrier error detected.*"
    r"|Deadlock detected.*"
    r"|(?:Error: )?Race reported between .+"
    rf"|(?:Error: )?{UNSUPPORTED}.*"
    r")\n(?P<stack>(?:=+ +(?:at|and|in) .+\n?)*)",
    re.MULTILINE,
)
_FRAME = re.compile(r"(?P<function>\S[^\n]*?)(?: in)? (?P<file>[^\s:]+):(?P<line>\d+)")
_FRAMES = 4


def compute_sanitizer(tool: Tool, environ: Mapping[str, str], log: Path) -> tuple[list[str], dict[str, str]]:
    """The prefix of a command, and its environment; reports go to the file ``log``.

    Raises:
        OpschemaError: it is not installed.
    """
    prefix = [
        _find(environ),
        *("--tool", tool),
        *("--target-processes", "all"),
        *("--log-file", str(log).replace("%", "%%")),
        *("--launch-timeout", "0"),  # workers have time limits of their own
        *("--report-api-errors", "no"),  # calls by which libraries find out what a driver has
    ]
    return prefix, {**environ, **({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if tool in _UNCACHED else {})}


def _find(environ: Mapping[str, str]) -> str:
    found = shutil.which("compute-sanitizer", path=environ.get("PATH")) or shutil.which(
        "compute-sanitizer", path=_USUAL
    )
    for place in sys.path if found is None else ():
        for pattern in _BESIDE_PYTHON:
            for path in Path(place).glob(pattern):
                return str(path)
    if found is None:
        raise OpschemaError(
            "--sanitizer on a GPU needs compute-sanitizer, which is not found: pip install nvidia-cuda-sanitizer-api"
        )
    return found


def report(text: str) -> str:
    """Return the first error in a log, a line followed by one place per line, or an empty text."""
    found = _REPORT.search(text)
    if found is None:
        return ""
    what, _, place = found["what"].partition(" access at ") if "Race" in found["what"] else (found["what"], "", "")
    lines = [place, *(line.lstrip("= ") for line in found["stack"].splitlines())]
    places = [f"at {_place(line)}" for line in lines if line]
    return "\n".join([what.removeprefix("Error: ").rstrip("."), *places[:_FRAMES]])


def _place(line: str) -> str:
    """Return a place as ``file:line in function``, with the parts that the line has."""
    line = re.sub(r"^(?:at|in|and (?:Read|Write) access at) | \[\d+ hazards?\]$", "", line.strip())
    found = _FRAME.fullmatch(line)
    return f"{Path(found['file']).name}:{found['line']} in {found['function']}" if found is not None else line


class ReportLog:
    """The log file of a process; None: the process has none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read = 0

    def new_report(self) -> str:
        """Return the first error in the log since the last call."""
        if self._path is None:
            return ""
        time.sleep(_PATIENCE)
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._read)
                text = stream.read()
        except OSError:  # nothing was written yet
            return ""
        self._read += len(text)
        return report(text.decode("utf-8", "replace"))

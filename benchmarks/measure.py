"""Runs a command several times and measures wall time and the peak resident memory of its process tree."""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.01


@dataclass(frozen=True)
class Measured:
    """Median wall seconds of the runs, the spread between fastest and slowest, and the peak MiB of the whole tree."""

    seconds: float
    fastest: float
    slowest: float
    mebibytes: float
    returncode: int


def measure(command: Sequence[str], cwd: Path, *, runs: int = 3, env: Mapping[str, str] | None = None) -> Measured:
    """Run ``command`` ``runs`` times."""
    # Every tool runs with its modules compiled, as it is installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: list[float] = []
    peak = 0.0
    code = 0
    for _ in range(runs):
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env={**environment, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        sampler = _Sampler(process.pid)
        code = process.wait()
        seconds.append(time.perf_counter() - started)
        peak = max(peak, sampler.stop())
    return Measured(statistics.median(seconds), min(seconds), max(seconds), peak, code)


class _Sampler(threading.Thread):
    """Sums the resident memory of a process and its children every 10 ms; shared pages count once a process."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0
        self.ended = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.wait(SAMPLE_SECONDS):
            try:
                root = psutil.Process(self.pid)
                self.peak = max(self.peak, sum(_rss(item) for item in (root, *root.children(recursive=True))))
            except psutil.Error:
                return

    def stop(self) -> float:
        """The peak in MiB."""
        self.ended.set()
        self.join()
        return self.peak / 2**20


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0

"""Waits for what git writes, but not for ever: git itself waits without end for a pipe that is named like a file it reads."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which a process of git is ended in any case."""

ASLEEP = 5.0
"""Seconds in which git may sleep without using the processor; on Linux, where that can be seen."""

_LOOK = 0.5


def answer_of(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> tuple[bytes, bytes] | None:
    """Standard output and error of a process after its end; None if it was killed because it took too long."""
    started = awake = time.monotonic()
    used = _used(process.pid)
    while True:
        try:
            return process.communicate(timeout=_LOOK)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            before, used = used, _used(process.pid)
            awake = now if used is None or used != before else awake
            if now - started > patience or now - awake > ASLEEP:
                process.kill()
                process.communicate()
                return None


def _used(pid: int) -> int | None:
    """The processor time (in ticks) of a process that sleeps; None of one that runs or waits for a disk, and where that is not
    known.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12]) if fields[0] == b"S" else None

"""Waits for git's output, but not forever: git itself waits without limit for a named pipe in place of a file that it reads."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which a git process is always killed."""

ASLEEP = 5.0
"""Seconds for which git may sleep without using the processor; on Linux, where that can be observed."""

_LOOK = 0.5


def answer_of(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> tuple[bytes, bytes] | None:
    """Return standard output and error of a finished process; None if it was killed because it took too long."""
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
    """Return the processor time (in ticks) of a sleeping process; None for one that runs or waits for a disk, and if that is not
    known.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12]) if fields[0] == b"S" else None

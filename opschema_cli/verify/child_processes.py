"""Processor time of a worker and its child processes, to tell a call that waits for a compiler from one that hangs.

They are read from ``/proc``; where there is none (not Linux), no process is seen to compute.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

COMPILE_SECONDS = 900.0
"""Seconds that processes which a call started may compute beyond its own time limit."""

_SHARE = 0.05
_TICKS = float(os.sysconf("SC_CLK_TCK")) if hasattr(os, "sysconf") else 100.0
_PARENT, _OWN, _ENDED = 1, slice(11, 13), slice(13, 15)
"""Positions in ``/proc/PID/stat`` after the name: the parent, the times of the process, and those of ended children."""


class ChildProcesses:
    """The descendants of one process, and how long they have computed."""

    def __init__(self, pid: int, now: float) -> None:
        self._pid = pid
        self._at, self._computed = now, computed(pid)

    def have_computed(self, now: float) -> bool:
        """Whether they took at least a twentieth of a processor since the last call."""
        before, self._computed = self._computed, computed(self._pid)
        passed, self._at = now - self._at, now
        return passed > 0 and self._computed - before >= _SHARE * passed


class OwnTime:
    """The processor time of one process alone."""

    def __init__(self, pid: int, now: float) -> None:
        self._pid = pid
        self._at, self._computed = now, _own(pid)

    def has_computed(self, now: float) -> bool:
        """Whether it took at least a twentieth of a processor since the last call."""
        before, self._computed = self._computed, _own(self._pid)
        passed, self._at = now - self._at, now
        return passed > 0 and self._computed - before >= _SHARE * passed


def is_running(pid: int) -> bool:
    """Whether a process is running. An ended process keeps its PID until its parent has read its status."""
    return _fields(pid)[:1] not in ([], ["Z"], ["X"])


def _own(pid: int) -> float:
    return _sum(_fields(pid)[_OWN]) / _TICKS


def _fields(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` after the name, or none if the process has ended, or there is no such folder."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def computed(pid: int) -> float:
    """The seconds of processor time of all descendants of a process, those that have ended included."""
    children: dict[int, list[int]] = defaultdict(list)
    times: dict[int, list[str]] = {}
    for child, fields in _processes():
        children[int(fields[_PARENT])].append(child)
        times[child] = fields
    if pid not in times:
        return 0.0
    ticks, waiting = _sum(times[pid][_ENDED]), list(children[pid])
    while waiting:
        child = waiting.pop()
        ticks += _sum(times[child][_OWN]) + _sum(times[child][_ENDED])
        waiting += children[child]
    return ticks / _TICKS


def open_files() -> set[str]:
    """The paths of all files that processes of this user hold open."""
    found: set[str] = set()
    for number in _numbers():
        with suppress(OSError):
            for item in os.scandir(f"/proc/{number}/fd"):
                with suppress(OSError):
                    found.add(os.readlink(item.path))
    return found


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield the processes of this machine with the fields of their ``stat`` after the name."""
    for number in _numbers():
        if fields := _fields(number):
            yield number, fields


def _numbers() -> list[int]:
    """Yield the PIDs of this machine. Each process may have ended since."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _sum(fields: list[str]) -> int:
    return sum(map(int, fields))

"""Memory that a call may take: measured, and held to, so that no machine swaps and no process is killed."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

if sys.platform != "win32":
    import fcntl
    import resource

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
_CACHE = re.compile(r"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)
"""File contents that the kernel drops where memory is needed, which count as used."""

_RESERVE = 1 << 30
_SHARE = 0.85
_POLL = 0.2


def spare_memory(device: str) -> int | None:
    """Return the number of bytes that may be used on a device, after a reserve for others, or None if it is unknown."""
    if torch.device(device).type == "cuda":
        free: int | None = torch.cuda.mem_get_info(device)[0]
    else:
        free = _available()
    return None if free is None else max(0, min(int(free * _SHARE), free - _RESERVE))


@contextmanager
def memory_limited(more: int, device: str) -> Iterator[None]:
    """Limit the additional CPU memory of this process, so that larger allocations fail without affecting other processes."""
    if sys.platform == "win32" or torch.device(device).type != "cpu":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = _address_space()
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([used + more, *limits]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other run of this user on this machine has a large tensor."""
    if sys.platform == "win32":
        yield
        return
    path = Path(tempfile.gettempdir(), f"opschema-large-tensor-{os.getuid()}.lock")
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while not _locked(lock):
            time.sleep(_POLL)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _available() -> int | None:
    """The memory that the kernel says is available, within the limit of the container."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    if found is None:
        return None
    return min([int(found[1]) << 10, *_left_in_container()])


def _left_in_container() -> Iterator[int]:
    for limit, usage, statistics in _CGROUPS:
        with suppress(OSError, ValueError):
            dropped = _CACHE.search(Path(statistics).read_text())
            used = int(Path(usage).read_text()) - (int(dropped[1]) if dropped else 0)
            yield int(Path(limit).read_text()) - used


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

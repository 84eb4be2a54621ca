"""Memory that every call of an op keeps."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch

from opschema_cli.verify.model import Finding

MEASURABLE = (1 << 10, 1 << 23)
"""The bytes of the largest tensor of a call whose memory is measured: more than the noise, and little to compute."""

_FIRST, _CALLS = 2, 5
_LEAST = 256


class _Info(ctypes.Structure):
    """``struct mallinfo2`` of the GNU C library."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def memory_kept(call: Callable[[], object], smallest: int, side: str, device: torch.device | str) -> list[Finding]:
    """Call several times and compare the bytes in use: ``memory``, if each call keeps at least half of its smallest tensor, of
    ``smallest`` bytes. Tables that the first calls set up do not count.
    """
    least = max(smallest // 2, _LEAST)
    if _kept(call, device, collect=False) < least or (kept := _kept(call, device, collect=True)) < least:
        return []
    message = f"every call with the same inputs keeps {kept:,} bytes more in use"
    return [Finding(check="memory", side=side, message=message)]


def _kept(call: Callable[[], object], device: torch.device | str, *, collect: bool) -> int:
    """Return a lower bound of the bytes that each call keeps, or 0 if it is unknown. ``collect`` frees reference cycles in
    between; otherwise none are freed, so that what earlier calls left does not hide what these keep.
    """
    used: list[int] = []
    with _no_collections():
        for _ in range(_FIRST + _CALLS):
            call()
            if collect:
                gc.collect()
            if (now := _in_use(device)) is None:
                return 0
            used.append(now)
    return max(min(later - earlier for earlier, later in pairwise(used[_FIRST:])), 0)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep Python from looking for garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _in_use(device: torch.device | str) -> int | None:
    """Return the bytes in use, or None if the C library does not report them."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        return torch.cuda.memory_allocated(device)
    if _mallinfo is None:
        return None
    info = _mallinfo()
    return int(info.uordblks + info.hblkhd)


def _find_mallinfo() -> Callable[[], _Info] | None:
    try:
        found = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return None
    found.restype = _Info
    return found


_mallinfo = _find_mallinfo()

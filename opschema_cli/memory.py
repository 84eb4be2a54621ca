"""Returns memory that the allocator keeps but nothing uses."""

from __future__ import annotations

import sys


def return_free_memory() -> None:
    """Return free memory to the system on Linux: glibc keeps free blocks that lie between used ones. Does nothing elsewhere."""
    if sys.platform == "linux":
        # Imported here, since most runs do not need it.
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

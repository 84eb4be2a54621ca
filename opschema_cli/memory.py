"""Memory of this process that the allocator holds and nothing uses."""

from __future__ import annotations

import sys


def return_free_memory() -> None:
    """Give free memory back to the system; glibc keeps what lies between blocks that are in use. Elsewhere nothing is done."""
    if sys.platform == "linux":
        # Not at the top: most runs do without.
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

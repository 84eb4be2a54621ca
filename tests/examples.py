"""How many generated examples a test tries."""

from __future__ import annotations

import os


def examples(slow: int, usual: int) -> int:
    """``slow`` with ``OPSCHEMA_SLOW``; ``usual`` in the runs of each change, where CI draws the same ones each time."""
    return slow if os.environ.get("OPSCHEMA_SLOW") else usual

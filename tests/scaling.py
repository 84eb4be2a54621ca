"""Whether the time of some work grows linearly with its input, told from quadratic growth also on a busy machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

STEP = 24
"""How many times as large the larger input is, so large that the processor's caches, which it leaves, matter little."""

LIMIT = STEP**1.5
"""The ratio of the two times from which on they are not linear: halfway between linear (24) and quadratic (576) growth."""

LEAST = 0.005
"""Processor seconds below which a time says nothing: the input is doubled until the work takes as long."""

MOST = 2**6
"""How many times the size is tried; work that then takes no time is bounded by a limit."""

ROUNDS = 6
"""How often both are measured before they fail: other processes only ever make them slower."""

Work = Callable[[], object]


def check_linear(prepare: Callable[[int], Work], size: int) -> None:
    """Fail if work on a larger input takes far longer than in proportion to its size.

    Args:
        prepare: takes the size of an input, makes the input, and returns the work, whose processor time alone is measured.
        size: the size to begin with.
    """
    largest = size * MOST
    while seconds(prepare(size)) < LEAST and size < largest:
        size *= 2
    once = more = float("inf")
    for _ in range(ROUNDS):
        once, more = (min(least, seconds(prepare(n))) for least, n in ((once, size), (more, STEP * size)))
        if more < LIMIT * max(once, LEAST):
            return
    pytest.fail(f"not linear: {once:.3f} s for {size:,}, {more:.3f} s for {STEP * size:,}")


def seconds(work: Work) -> float:
    """The processor time of some work. No garbage is collected: after many tests, looking for it takes seconds."""
    gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.enable()

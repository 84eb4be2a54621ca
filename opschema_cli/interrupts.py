"""Blocks ^C, and detects a ^C whose ``KeyboardInterrupt`` was lost."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread. A process that is started inside inherits the block for good: otherwise, ^C would end it with a
    traceback before it can ignore the signal.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_noted = False


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Record each ^C, for :func:`check_interrupted`. If ^C comes during a finalizer or a callback of an extension module, Python
    drops the ``KeyboardInterrupt`` and continues as if nothing had happened.
    """
    global _noted
    _noted = False
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or handled by other code
        yield
        return
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _note(number: int, frame: FrameType | None) -> None:
    global _noted
    _noted = True
    signal.default_int_handler(number, frame)


def is_interrupted() -> bool:
    """Whether ^C was pressed inside the innermost :func:`noted_interrupts`, even if its exception was lost."""
    return _noted


def check_interrupted() -> None:
    """Raise the ``KeyboardInterrupt`` that may have been lost.

    Raises:
        KeyboardInterrupt: ^C was pressed.
    """
    if _noted:
        raise KeyboardInterrupt

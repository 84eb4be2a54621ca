"""^C, and processes that are not to die of it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Keep ^C away from this thread, and for good from a process that it starts: it would die with a traceback before it
    can say that it does not want any.
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
    """Note each ^C as it comes. Python loses the exception of one that comes in a finalizer or in a callback of an extension
    module, and would go on as if nothing had happened.
    """
    global _noted
    _noted = False
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or another's matter
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
    """Whether ^C has come in the innermost :func:`noted_interrupts`, even if its exception was lost."""
    return _noted


def check_interrupted() -> None:
    """Raise again what may have been lost.

    Raises:
        KeyboardInterrupt: ^C has come.
    """
    if _noted:
        raise KeyboardInterrupt

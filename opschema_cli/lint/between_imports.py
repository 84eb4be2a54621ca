"""Other work between the imports of many modules, which take a tenth of a second together."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opschema_cli.errors import OpschemaError


class _Before:
    """A finder that finds nothing, and does some work before each module that is imported.

    It does none for modules that the work itself or another thread imports, or a forked process, which must not take what is meant
    for this one.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._home = _here()
        self._at_work = False
        self.error: OpschemaError | None = None
        """The error that ended the work. If it were raised at once, it would be taken for one of the imported module."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if self._at_work or self.error is not None or self._home != _here():
            return
        self._at_work = True
        try:
            self._act()
        except OpschemaError as error:
            self.error = error
        finally:
            self._at_work = False


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


@contextmanager
def between_imports(act: Callable[[], None]) -> Iterator[None]:
    """Do some work before each module that is imported inside the block.

    Raises:
        OpschemaError: that of ``act``, at the end.
    """
    finder = _Before(act)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
    if finder.error is not None:
        raise finder.error

"""Other work between the imports of many modules, which take a tenth of a second together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Before:
    """A finder that finds nothing: it is asked for each module, and uses the occasion."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        self._act()


@contextmanager
def between_imports(act: Callable[[], None]) -> Iterator[None]:
    """While this lasts, do something before each module that is imported."""
    finder = _Before(act)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)

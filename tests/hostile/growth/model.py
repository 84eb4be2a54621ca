"""A kind of input that grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

Files: TypeAlias = Mapping[str, "str | bytes"]


class Kind(NamedTuple):
    """Files of any size ``n``; ``size`` is the one from which on the run's time shows how it grows. ``args`` are those of the
    command, after which ``--no-cache`` and a format follow.
    """

    files: Callable[[int], Files]
    size: int
    args: tuple[str, ...] = ("lint",)
    format: str = "json"

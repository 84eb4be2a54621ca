"""``cached_property`` for modules that build on the module of the class, so that the class need not import them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def cached_on_argument(function: Callable[[A], T]) -> Callable[[A], T]:
    """Cache a function of one object in that object's ``__dict__``, where it ends with the object."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def cached(argument: A) -> T:
        values = argument.__dict__
        if key not in values:
            values[key] = function(argument)
        found: T = values[key]
        return found

    return cached

"""Shape semantics of torch's functions, by name.

Each is a function of the shapes of the tensors that a call is given, in the order of its parameters, and of some other parameters
by name. It returns the shape of each result, or a list of shapes where the call returns as many tensors. Which function of torch
has which semantics is in the table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType

import msgspec

from opschema_cli.evaluation.tensors import (
    creation,
    indexing,
    joining,
    neighbourhoods,
    pointwise,
    products,
    reductions,
    views,
)

_ROOMS: tuple[ModuleType, ...] = (
    pointwise,
    reductions,
    views,
    joining,
    products,
    indexing,
    creation,
    neighbourhoods,
)
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "dim": ("axis",),
    "dims": ("dim", "axes"),
    "size": ("shape",),
    "dim0": ("axis0",),
    "dim1": ("axis1",),
    "sections": ("indices_or_sections",),
    "split_size": ("split_size_or_sections",),
    "split_sizes": ("split_size", "indices"),
    "repeats": ("repeats",),
    "m": ("m",),
}
"""Further names of the parameters that a semantics reads."""


class Semantics(msgspec.Struct, frozen=True, eq=False):
    """A function from shapes to shapes; ``required`` and ``optional`` are the parameters that it reads."""

    name: str
    function: Callable[..., object]
    required: tuple[str, ...]
    optional: tuple[str, ...]

    def reads(self, names: frozenset[str]) -> dict[str, str] | None:
        """The parameters that it reads, as a function with parameters of these names has them; None if one is missing."""
        found = {option: _named(option, names) for option in (*self.required, *self.optional)}
        if any(found[option] is None for option in self.required):
            return None
        return {option: name for option, name in found.items() if name is not None}


def _named(option: str, names: frozenset[str]) -> str | None:
    return next((name for name in (option, *_ALIASES.get(option, ())) if name in names), None)


@cache
def semantics() -> Mapping[str, Semantics]:
    """All semantics, in the order in which a function is held against them."""
    found = {}
    for room in _ROOMS:
        for name, function in vars(room).items():
            if inspect.isfunction(function) and function.__module__ == room.__name__ and _takes_tensors(function):
                options = list(inspect.signature(function).parameters.values())[1:]
                required = tuple(item.name for item in options if item.default is item.empty)
                optional = tuple(item.name for item in options if item.default is not item.empty)
                found[f"{room.__name__.rpartition('.')[2]}.{name}"] = Semantics(name, function, required, optional)
    return found


def _takes_tensors(function: Callable[..., object]) -> bool:
    return function.__name__[0] != "_" and next(iter(inspect.signature(function).parameters), "") == "tensors"

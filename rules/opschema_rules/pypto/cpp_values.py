"""Values of the variables of an orchestration while it is followed. Their contents are in ``cpp_state``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from opschema_rules.pypto.facts import KernelId


class Tensors(msgspec.Struct, frozen=True):
    """A tensor: one of these arguments of the orchestration, or -1 for any other."""

    arguments: frozenset[int]

    @property
    def argument(self) -> int:
        """Its only possible argument; -1 for another tensor, or one of several."""
        return min(self.arguments) if len(self.arguments) == 1 else -1


class Outputs(Tensors, frozen=True):
    """The tensors that the runtime made for a task or for ``alloc_tensors()``. There are no more than ``count``, if the task's
    ``payload`` is as it appears and ``tensors`` are the orchestration's own. ``only`` if the task writes nothing else.
    """

    count: int
    payload: str = ""
    tensors: tuple[str, ...] = ()
    only: bool = False


class Pointer(msgspec.Struct, frozen=True):
    """The memory of one of these arguments."""

    arguments: frozenset[int]


class Created(msgspec.Struct, frozen=True):
    """A description from which the runtime allocates a tensor (``TensorCreateInfo``)."""


class Outside(msgspec.Struct, frozen=True):
    """The arguments of the orchestration itself."""


class Number(msgspec.Struct, frozen=True):
    """A known integer."""

    value: int


class Table(msgspec.Struct, frozen=True):
    """A constant array of integers; None for unknown ones."""

    items: tuple[int | None, ...]


class Object(msgspec.Struct, frozen=True):
    """An object of some class, possibly a payload, or a pointer to one: the number under which a state keeps its contents."""

    number: int
    pointer: bool = False


class Several(msgspec.Struct, frozen=True):
    """One of several objects, or a pointer to one."""

    numbers: frozenset[int]


class Mixed(msgspec.Struct, frozen=True):
    """The kernels of a task (``MixedKernels``), by field."""

    fields: tuple[tuple[str, KernelId | None], ...] = ()

    @property
    def kernels(self) -> tuple[KernelId, ...]:
        """The kernels in these fields."""
        return tuple(kernel for _, kernel in self.fields if kernel is not None)

    def having(self, name: str, kernel: KernelId | None) -> Mixed:
        """Return a copy with another kernel in a field."""
        return Mixed(tuple(sorted({**dict(self.fields), name: kernel}.items(), key=lambda item: item[0])))


class Unknown(msgspec.Struct, frozen=True):
    """Anything else."""


class Bits(Unknown, frozen=True):
    """One of the orchestration's own scalars, unchanged."""

    index: int


Value: TypeAlias = "Tensors | Pointer | Created | Outside | Number | Table | Object | Several | Mixed | Unknown"

OTHER = Tensors(frozenset({-1}))
UNKNOWN = Unknown()


def united(values: Iterable[Value]) -> Value:
    """Return a value made from some values, or one of them: a tensor or memory if any of them is."""
    found = list(values)
    for kind in (Tensors, Pointer):
        if any(isinstance(item, kind) for item in found):
            parts = (item.arguments if isinstance(item, Tensors | Pointer) else OTHER.arguments for item in found)
            return kind(frozenset().union(*parts))
    return UNKNOWN


def merged(values: Iterable[Value]) -> Value:
    """Return the value of a variable that may have either value."""
    found = list(dict.fromkeys(values))
    numbers = frozenset(number for item in found for number in objects_of(item))
    return found[0] if len(found) == 1 else Several(numbers) if numbers else united(found)


def objects_of(value: Value) -> frozenset[int]:
    """Return the numbers of the objects that a value may refer to."""
    return (
        frozenset({value.number})
        if isinstance(value, Object)
        else value.numbers
        if isinstance(value, Several)
        else frozenset()
    )

"""Data shared with packs that build on this one: which arguments operators write, which methods pass theirs on to them, and
where their fakes are.

It is plain data, so that it can be made in one process and read in another.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from opschema_cli.source.resolution import ClassKey
from opschema_cli.source.text import Place


class SharedOperator(msgspec.Struct, frozen=True, array_like=True):
    """An operator: the names that it may have, empty when they are not known, and its function's tensors in their order.

    ``mutated`` are the arguments that it is declared to write with the places that state it, None when that is not known;
    ``stated`` is the place of the entire statement. ``misdeclared`` is true where its kernels write something else.
    """

    names: tuple[str, ...]
    tensors: tuple[str, ...]
    mutated: dict[str, Place] | None
    stated: Place
    misdeclared: bool = False


class Write(msgspec.Struct, frozen=True, array_like=True):
    """A parameter of a method that an operator writes, by its index, and the place that states it; ``self.x`` is an attribute of
    the method's object.
    """

    parameter: str
    operator: int
    place: Place


FunctionKey: TypeAlias = tuple[str, int]
"""A function's file and place."""


class SharedName(msgspec.Struct, frozen=True, tag=True):
    """An argument that is a name of another package."""

    name: str


class SharedCallable(msgspec.Struct, frozen=True, tag=True):
    """An argument that is a function of a module."""

    key: FunctionKey


class SharedUnknown(msgspec.Struct, frozen=True, tag=True):
    """An unknown argument."""


SharedValue: TypeAlias = str | int | float | bool | tuple[str, int] | SharedName | SharedCallable | SharedUnknown | None
"""An argument: a constant, a class, or one of these."""


class SharedMaker(msgspec.Struct, frozen=True, array_like=True):
    """A call from outside functions in which the operators ``names`` are defined, or their fakes registered: the function that is
    called, and its arguments.
    """

    names: tuple[str, ...]
    function: FunctionKey
    arguments: dict[str, SharedValue]


class SharedOperators(msgspec.Struct, frozen=True, array_like=True):
    """The operators of a tree.

    ``writes`` are the parameters of methods that operators write: by class, and by method. ``names`` are the strings that code
    outside a class writes to its attributes, as tuples, None where they are not known.
    ``fakes`` are the fakes that are registered outside functions, by the operators' names; ``makers`` the calls that define others.
    """

    operators: tuple[SharedOperator, ...] = ()
    writes: dict[ClassKey, dict[str, tuple[Write, ...]]] = msgspec.field(default_factory=dict)
    names: dict[ClassKey, dict[str, tuple[str, ...] | None]] = msgspec.field(default_factory=dict)
    unnamed: bool = False
    fakes: dict[str, FunctionKey] = msgspec.field(default_factory=dict)
    makers: tuple[SharedMaker, ...] = ()

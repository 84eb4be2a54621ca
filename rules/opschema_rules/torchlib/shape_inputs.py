"""Concrete inputs of an operator, made from its schema: tensor sizes and number values that can be changed one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

import msgspec

from opschema_cli.evaluation.execution.values import DtypeValue, Opaque, TensorValue
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, SchemaType
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.shape_hints import dtypes_of, ranks_of, strings_of

SIZE = 256
"""Initial size of every dimension: a multiple of the sizes that kernels round up to."""
DTYPES = ("bfloat16", "float16", "float32")
DTYPE = Opaque("the name of the dtype of the tensors")
"""Placeholder for a string that names the dtype."""
MAX_INPUTS = 48
"""Maximum number of initial inputs to try for one operator."""
_INTEGRAL = re.compile(
    r"(^|_)(ids?|idx|index|indices|offsets?|lens?|lengths?|seqlens?|tables?|mapping|slots?|positions?|cu)(_|$)"
)

Atom = tuple[str, int]
"""A dimension of a tensor, or a number, whose dimension is -1."""


class Input(msgspec.Struct, frozen=True):
    """Arguments of a call: shapes and dtypes of tensors, and other values, by the names of the schema."""

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    values: Mapping[str, object]

    @property
    def key(self) -> object:
        """A key that is equal for equal inputs."""
        return tuple(self.shapes.items()), tuple(self.dtypes.items()), tuple(self.values.items())

    @property
    def atoms(self) -> list[Atom]:
        """The dimensions and numbers."""
        sizes = [(name, dim) for name, shape in self.shapes.items() for dim in range(len(shape))]
        return sizes + [(name, -1) for name, value in self.values.items() if type(value) is int]

    def size(self, atom: Atom) -> int:
        """The size of a dimension, or the value of a number."""
        name, dim = atom
        found = self.values[name] if dim < 0 else self.shapes[name][dim]
        assert isinstance(found, int)  # others are no atoms
        return found

    def changed(self, atoms: frozenset[Atom], size: int) -> Input:
        """Return the same input with another size for some dimensions and numbers."""
        shapes = {
            name: tuple(size if (name, dim) in atoms else old for dim, old in enumerate(shape))
            for name, shape in self.shapes.items()
        }
        values = {name: size if (name, -1) in atoms else value for name, value in self.values.items()}
        return Input(shapes, self.dtypes, values)

    def argument(self, argument: Argument) -> object:
        """The value of an argument."""
        if argument.name not in self.shapes:
            return self.values[argument.name]
        tensor = TensorValue(self.shapes[argument.name], self.dtypes[argument.name])
        return [tensor, tensor] if argument.type.is_list else tensor

    def __str__(self) -> str:
        tensors = [f"{name}: {self.dtypes[name]}{list(shape)}" for name, shape in self.shapes.items()]
        others = [
            f"{name}={value!r}" for name, value in self.values.items() if isinstance(value, int | float | str | None)
        ]
        return ", ".join([*tensors, *others])


class Family(msgspec.Struct, frozen=True):
    """Inputs that differ in ranks and dtypes alone: ``key`` has the optional tensors that are passed, flags and words."""

    key: tuple[tuple[str, object], ...]
    inputs: tuple[Input, ...]


def families(schema: OperatorSchema, bodies: tuple[Body, ...]) -> Iterator[Family]:
    """The inputs of a schema that are tried."""
    tensors = [item for item in schema.arguments if item.type.base == "Tensor"]
    ranks = {item.name: ranks_of(bodies, item.name) for item in tensors}
    asserted = {item.name: dtypes_of(bodies, item.name) for item in tensors}
    choices = {item.name: _choices(item, bodies) for item in schema.arguments if item.type.base != "Tensor"}
    optional = [item.name for item in tensors if item.type.optional]
    words = [name for name, values in choices.items() if len(values) > 1]
    combinations = product((False, True) if optional else (True,), *(choices[name] for name in words))
    for passed, *picked in list(combinations)[:12]:
        values = {name: found[0] for name, found in choices.items()} | dict(zip(words, picked, strict=True))
        values |= {name: None for name in optional if not passed}
        key = (("optional", passed), *zip(words, picked, strict=True))
        present = {name: found for name, found in ranks.items() if passed or name not in optional}
        yield Family(key, tuple(_inputs(present, values, asserted))[:MAX_INPUTS])


def _inputs(
    ranks: Mapping[str, tuple[int, ...]], values: Mapping[str, object], asserted: Mapping[str, frozenset[str]]
) -> Iterator[Input]:
    """The likeliest ranks with all numbers and dtypes, and then the others."""
    likeliest, *others = _ranks(ranks)
    numbers = (SIZE, 8, 1) if any(type(value) is int for value in values.values()) else (SIZE,)
    for some in ([likeliest], others):
        for number, dtype in product(numbers, DTYPES):
            dtypes = {name: _dtype(name, dtype, asserted[name]) for name in ranks}
            named = {name: _value(value, number, dtype) for name, value in values.items()}
            for chosen in some:
                yield Input({name: (SIZE,) * rank for name, rank in chosen.items()}, dtypes, named)


def _dtype(name: str, dtype: str, asserted: frozenset[str]) -> str:
    likeliest = "int32" if _INTEGRAL.search(name) else dtype
    return likeliest if not asserted or likeliest in asserted else min(asserted)


def _value(value: object, number: int, dtype: str) -> object:
    return number if type(value) is int else dtype if value is DTYPE else value


def _ranks(ranks: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """All tensors with their likeliest rank, then each alone with another, then all with the same."""
    first = {name: found[0] for name, found in ranks.items()}
    yield first
    for name, found in ranks.items():
        for rank in found[1:]:
            yield {**first, name: rank}
    for rank in (3, 4, 1):
        if len(ranks) > 1 and all(rank in found for found in ranks.values()):
            yield dict.fromkeys(ranks, rank)


def _choices(argument: Argument, bodies: tuple[Body, ...]) -> tuple[object, ...]:
    """Return the values to try for an argument that is not a tensor."""
    kind = argument.type.inner if argument.type.optional and argument.type.inner is not None else argument.type
    if argument.default == "None" or (argument.type.optional and argument.default is None):
        return (None,)
    return _of_type(kind, argument, bodies)


def _of_type(kind: SchemaType, argument: Argument, bodies: tuple[Body, ...]) -> tuple[object, ...]:
    if kind.is_list:
        return (Opaque("a list"),)
    match kind.base:
        case "int" | "SymInt":
            return (SIZE,)
        case "bool":
            return (False, True)
        case "float":
            return (1.0,)
        case "str":
            other = DTYPE if argument.name == "dtype" else Opaque("a string")
            return strings_of(bodies, argument.name)[:3] or (other,)
        case "ScalarType":
            return (DtypeValue("bfloat16"),)
    return (Opaque(f"a value of the type {kind}"),)

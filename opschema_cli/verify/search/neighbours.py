"""Calls that differ from another one in one respect, for a search that goes on from calls which were refused in a new way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest

import msgspec

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.verify.model import Call, Input
from opschema_cli.verify.search import choices
from opschema_cli.verify.search.candidates import completed, fits_in_memory, with_values
from opschema_cli.verify.search.choices import SIZES, Hints

_TENSOR_DTYPES = ("float32", "int8", "uint8", "int64", "int32", "bool", "bfloat16", "float16")
_DTYPE = re.compile(
    r"\b(?:b?float(?:16|32|64)|u?int(?:8|16|32|64)|bool|float8_e\w+)\b|\b(?:Half|Float|BFloat16|Long|Int|Char|Byte|Bool)\b"
)
_OF_CPP = {
    "Half": "float16",
    "Float": "float32",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}
_NUMBER = re.compile(r"(?<![\w.])\d{1,5}(?![\w.])")
_SHAPE = re.compile(r"[\[(]\d{1,5}(?:, ?\d{1,5}){0,5},?[\])]")
_SHAPES = 4
_MOST = 80


def neighbours(schema: OperatorSchema, call: Call, hints: Hints, reason: str) -> Iterator[Call]:
    """Yield calls with another shape, dtype or value of one argument, alternating between arguments. Shapes, dtypes and numbers
    in the ``reason`` for the refusal come first.
    """
    owners = {name: owner for owner, names in call.lists.items() for name in names}
    by_argument = [
        _of_tensor(schema, call, item, owners, reason) for item in schema.arguments if choices.is_tensor(item.type)
    ]
    by_argument += [
        with_values(schema, call, _hints(call, item, hints, reason), only=item.name) for item in schema.arguments
    ]
    turns = chain.from_iterable(zip_longest(*by_argument))
    yield from islice((item for item in turns if item is not None and fits_in_memory(item)), _MOST)


def _of_tensor(
    schema: OperatorSchema, call: Call, argument: Argument, owners: dict[str, str], reason: str
) -> Iterator[Call]:
    """Calls with a tensor, or all tensors of a list, of another dtype or shape; also without an optional one, or with it."""
    mine = [item for item in call.inputs if owners.get(item.name, item.name) == argument.name]
    shapes = [*_mentioned_shapes(reason), *_shapes(call, argument, mine)]
    if not mine:
        yield from (_with(schema, call, argument, shape, "float32") for shape in shapes)
        return
    dtypes = [kind for kind in dict.fromkeys((*_mentioned(reason), *_TENSOR_DTYPES)) if kind != mine[0].dtype]
    of_dtypes = chain.from_iterable(_in_dtype(schema, call, mine, kind) for kind in dtypes)
    of_shapes = (_changed(schema, call, mine, shape=shape) for shape in shapes if shape != mine[0].shape)
    turns = chain.from_iterable(zip_longest(of_shapes, of_dtypes))
    yield from (item for item in turns if item is not None)


def _shapes(call: Call, argument: Argument, mine: Sequence[Input]) -> list[tuple[int, ...]]:
    """Return shapes of an argument, built from the sizes of the first tensor."""
    first = next((item for item in call.inputs if item not in mine), None)
    sizes = next((known for known in SIZES if first is not None and set(first.shape) <= set(known.values())), SIZES[0])
    names = {size: name for name, size in sizes.items()}
    if first is None or not set(first.shape) <= names.keys() or (mine and mine[0] == call.inputs[0]):
        found = choices.first_shapes(argument)
    else:
        found = choices.further_shapes(argument, tuple(names[size] for size in first.shape))
    return [choices.shape_of(axes, sizes) for _, axes in found]


def _with(schema: OperatorSchema, call: Call, argument: Argument, shape: tuple[int, ...], dtype: str) -> Call:
    """The call with an optional tensor that it lacks."""
    params = {name: value for name, value in call.params.items() if name != argument.name}
    made = Input(name=argument.name, shape=shape, dtype=choices.hinted_dtype(argument.name) or dtype)
    return completed(schema, msgspec.structs.replace(call, inputs=(*call.inputs, made), params=params))


def _changed(schema: OperatorSchema, call: Call, mine: Sequence[Input], **changes: object) -> Call:
    inputs = tuple(msgspec.structs.replace(item, **changes) if item in mine else item for item in call.inputs)
    return completed(schema, msgspec.structs.replace(call, inputs=inputs))


def _in_dtype(schema: OperatorSchema, call: Call, mine: Sequence[Input], dtype: str) -> Iterator[Call]:
    """The call with these tensors in another dtype, also with the arguments that are the same dtype."""
    changed = _changed(schema, call, mine, dtype=dtype)
    alike = {name: f"torch.{dtype}" for name, value in call.params.items() if value == f"torch.{mine[0].dtype}"}
    if alike:
        yield msgspec.structs.replace(changed, params={**call.params, **alike})
    yield changed


def _hints(call: Call, argument: Argument, hints: Hints, reason: str) -> Hints:
    """Return likely values of an argument in this call: those in the refusal and, for lists of integers, the shape of the first
    tensor and parts of it.
    """
    base = (argument.type.inner or argument.type).base if argument.type.optional else argument.type.base
    more: list[object] = []
    if argument.type.is_list and call.inputs:
        shape = call.inputs[0].shape
        more += [[*(1 for _ in shape[1:]), *shape[-1:]], list(shape), [1] * len(shape), [2] * len(shape)]
    elif base in ("int", "SymInt"):
        more += [int(text) for text in dict.fromkeys(_NUMBER.findall(reason))]
    elif base == "ScalarType":
        more += [f"torch.{kind}" for kind in (*(item.dtype for item in call.inputs), *_mentioned(reason))]
    return {**hints, argument.name: (*hints.get(argument.name, ()), *more)}


def _mentioned_shapes(reason: str) -> list[tuple[int, ...]]:
    """The shapes that an error mentions."""
    return [tuple(map(int, re.findall(r"\d+", text))) for text in dict.fromkeys(_SHAPE.findall(reason))][:_SHAPES]


def _mentioned(reason: str) -> list[str]:
    """The dtypes that an error mentions."""
    return list(dict.fromkeys(_OF_CPP.get(text, text) for text in _DTYPE.findall(reason)))

"""Calls of an operator derived only from its schema, the most likely ones first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import msgspec

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.verify.model import Call, Input, Output
from opschema_cli.verify.search import choices
from opschema_cli.verify.search.choices import SIZES, UNSET, Axes, Hints

_LIST_LENGTH = 2
_MOST_ELEMENTS = 1 << 22
"""Elements of all tensors of a call: to draw more takes seconds."""

_DTYPE_OF = "torch.<dtype of> "
"""Prefix of the value that represents the dtype of a tensor."""

_ABSENT: Axes = ("<absent>",)


class _Picked(msgspec.Struct, frozen=True):
    """One candidate: axes by tensor, dtypes, other values, and the sizes."""

    shapes: dict[str, Axes]
    dtypes: dict[str, str]
    values: dict[str, object]
    sizes: dict[str, int]


def unmakable(argument: Argument) -> str:
    """The reason why no value can be made for an argument; empty if one can."""
    if choices.is_tensor(argument.type) or choices.values(argument, SIZES[0], {}) is not None:
        return ""
    return f"no value of type `{argument.type}` can be made for `{argument.name}`"


def candidates(schema: OperatorSchema, hints: Hints = {}) -> Iterator[Call]:  # noqa: B006
    """The calls, by rising cost, each once."""
    hints = _with_dtypes_of_tensors(schema, hints)
    tensors = [item for item in schema.arguments if choices.is_tensor(item.type)]
    others = [item for item in schema.arguments if not choices.is_tensor(item.type)]
    seen: set[bytes] = set()
    for picked in _cheapest_first(tensors, others, hints):
        call = _call(schema, picked)
        key = msgspec.msgpack.encode(call)
        if key not in seen and fits_in_memory(call):
            seen.add(key)
            yield call


def unlike_calls(schema: OperatorSchema, hints: Hints) -> Iterator[Call]:
    """Calls that differ from each other as much as possible: tensors of each rank in each dtype, with other values."""
    hints = _with_dtypes_of_tensors(schema, hints)
    tensors = [item for item in schema.arguments if choices.is_tensor(item.type)]
    others = [item for item in schema.arguments if not choices.is_tensor(item.type)]
    for turn, (axes, dtype) in enumerate(product(choices.RANKS, choices.DTYPES)):
        sizes = SIZES[0]
        values = {item.name: _in_turn(choices.values(item, sizes, hints) or (), turn) for item in others}
        shapes = dict.fromkeys((item.name for item in tensors), axes)
        dtypes = dict.fromkeys(shapes, dtype)
        call = _call(schema, _Picked(shapes, dtypes, values, sizes))
        if fits_in_memory(call):
            yield call


def _with_dtypes_of_tensors(schema: OperatorSchema, hints: Hints) -> Hints:
    """Likely values, to which those of `input_dtype` are added: the dtype of the tensor `input`."""
    tensors = [item.name for item in schema.arguments if choices.is_tensor(item.type) and not item.type.is_list]
    found: dict[str, tuple[object, ...]] = {}
    for item in schema.arguments:
        of = item.name.removesuffix("dtype").rstrip("_") or next(iter(tensors), "")
        if item.type.base == "ScalarType" and item.name.endswith("dtype") and of in tensors:
            found[item.name] = (_DTYPE_OF + of,)
    return {**hints, **{name: (*values, *hints.get(name, ())) for name, values in found.items()}}


def fits_in_memory(call: Call) -> bool:
    """Whether a call is small enough to be tried."""
    return sum(math.prod(item.shape) for item in call.inputs) <= _MOST_ELEMENTS


def _in_turn(values: Sequence[tuple[int, object]], turn: int) -> object:
    return values[turn % len(values)][1] if values else UNSET


def with_values(schema: OperatorSchema, call: Call, hints: Hints, only: str = "") -> Iterator[Call]:
    """Yield copies of the call with one other value of one non-tensor argument each; with ``only``, of this argument."""
    for item in schema.arguments:
        if choices.is_tensor(item.type) or (only and item.name != only):
            continue
        for _, value in choices.values(item, SIZES[0], hints) or ():
            if value != UNSET and call.params.get(item.name, UNSET) != value and not _is_default(item, value):
                yield msgspec.structs.replace(call, params={**call.params, item.name: value})


def with_dtypes(call: Call) -> Iterator[Call]:
    """The call in other floating dtypes."""
    for dtypes in choices.other_floats({item.name: item.dtype for item in call.inputs}):
        inputs = tuple(msgspec.structs.replace(item, dtype=dtypes[item.name]) for item in call.inputs)
        yield msgspec.structs.replace(call, inputs=inputs)


def completed(schema: OperatorSchema, call: Call) -> Call:
    """Complete a call with the schema's information about written inputs and about outputs."""
    written = {item.name for item in schema.mutated}
    owners = {name: owner for owner, names in call.lists.items() for name in names}
    inputs = tuple(
        msgspec.structs.replace(
            _with_meaning(owners.get(item.name, item.name), item), mutated=owners.get(item.name, item.name) in written
        )
        for item in call.inputs
    )
    return msgspec.structs.replace(call, inputs=inputs, outputs=tuple(_outputs(schema)), aliases=_aliases(schema))


def _with_meaning(name: str, item: Input) -> Input:
    """An input with the meaning that the name of its argument has, if it holds integers."""
    if "int" not in item.dtype:
        return msgspec.structs.replace(item, ascending=False, index=False)
    free = item.low is None and item.high is None
    ascending = item.ascending or (free and choices.are_pointers(name))
    return msgspec.structs.replace(item, ascending=ascending, index=choices.is_index(name))


def _outputs(schema: OperatorSchema) -> Iterator[Output]:
    if any(item.type.is_list for item in schema.returns):
        return  # their number is not known
    several = len(schema.returns) > 1
    yield from (Output(name=_output_name(schema, place), optional=several) for place in range(len(schema.returns)))


def _output_name(schema: OperatorSchema, place: int) -> str:
    name = schema.returns[place].name
    if name and schema.argument(name) is None:
        return name
    return "output" if len(schema.returns) == 1 else f"output{place}"


def _aliases(schema: OperatorSchema) -> dict[str, str]:
    """The input whose storage an output may share, by the output's name."""
    marks = {name: item.name for item in schema.arguments if item.alias for name in item.alias.before}
    return {
        _output_name(schema, place): marks[name]
        for place, item in enumerate(schema.returns)
        if item.alias
        for name in item.alias.before
        if name in marks
    }


def _is_default(argument: Argument, value: object) -> bool:
    return argument.default is not None and argument.default == str(value)


def _cheapest_first(tensors: Sequence[Argument], others: Sequence[Argument], hints: Hints) -> Iterator[_Picked]:
    """All combinations by rising sums of costs, found with a heap of places in the lists of choices."""
    axes = _axes(tensors, others, hints)
    start = (0,) * len(axes)
    heap = [(0, start)]
    seen = {start}
    while heap:
        cost, places = heapq.heappop(heap)
        picked = _picked(tensors, others, places, hints)
        if picked is not None:
            yield picked
        for axis, place in enumerate(places):
            following = (*places[:axis], place + 1, *places[axis + 1 :])
            if place + 1 < len(axes[axis]) and following not in seen:
                seen.add(following)
                heapq.heappush(heap, (cost + axes[axis][place + 1] - axes[axis][place], following))


def _axes(tensors: Sequence[Argument], others: Sequence[Argument], hints: Hints) -> list[list[int]]:
    """The costs of the choices: shapes of each tensor, dtypes, values of each other argument, sizes."""
    found: list[list[int]] = []
    for index, item in enumerate(tensors):
        found.append([cost for cost, _ in _shape_choices(item, index, ("M", "N"))])
    found.append([cost for cost, _ in choices.dtypes(list(tensors))])
    found += [[cost for cost, _ in choices.values(item, SIZES[0], hints) or ()] for item in others]
    found.append([0, 5])
    return found


def _shape_choices(argument: Argument, index: int, first: Axes) -> list[tuple[int, Axes]]:
    shapes = choices.first_shapes(argument) if index == 0 else choices.further_shapes(argument, first)
    if not argument.type.optional:
        return shapes
    return [(0, _ABSENT), *((cost + 2, axes) for cost, axes in shapes)]


def _picked(
    tensors: Sequence[Argument], others: Sequence[Argument], places: Sequence[int], hints: Hints
) -> _Picked | None:
    """Return the choices at some positions, or None if a tensor has fewer for this first one."""
    shapes: dict[str, Axes] = {}
    first: Axes = ("M", "N")
    for index, item in enumerate(tensors):
        found = _shape_choices(item, index, first)
        if places[index] >= len(found):
            return None
        shapes[item.name] = found[places[index]][1]
        if index == 0 and shapes[item.name] != _ABSENT:
            first = shapes[item.name]
    rest = places[len(tensors) :]
    sizes = SIZES[rest[-1]]
    values = {
        item.name: (choices.values(item, sizes, hints) or ())[place][1]
        for item, place in zip(others, rest[1:-1], strict=True)
    }
    return _Picked(shapes, choices.dtypes(list(tensors))[rest[0]][1], values, sizes)


def _call(schema: OperatorSchema, picked: _Picked) -> Call:
    inputs: list[Input] = []
    lists: dict[str, tuple[str, ...]] = {}
    for item in schema.arguments:
        axes = picked.shapes.get(item.name, _ABSENT)
        if not choices.is_tensor(item.type) or axes == _ABSENT:
            continue
        names = _names(item)
        if item.type.is_list:
            lists[item.name] = names
        shape = choices.shape_of(axes, picked.sizes)
        inputs += [Input(name=name, shape=shape, dtype=picked.dtypes[item.name]) for name in names]
    params = {name: _resolved(value, picked.dtypes) for name, value in picked.values.items() if value != UNSET}
    absent = [name for name, axes in picked.shapes.items() if axes == _ABSENT and schema_requires(schema, name)]
    params |= dict.fromkeys(absent)
    return completed(schema, Call(inputs=tuple(inputs), params=params, lists=lists))


def _resolved(value: object, dtypes: Mapping[str, str]) -> object:
    if isinstance(value, str) and value.startswith(_DTYPE_OF):
        return f"torch.{dtypes[value.removeprefix(_DTYPE_OF)]}"
    return value


def schema_requires(schema: OperatorSchema, name: str) -> bool:
    """Whether an argument has no default."""
    argument = schema.argument(name)
    return argument is not None and argument.default is None


def _names(argument: Argument) -> tuple[str, ...]:
    if not argument.type.is_list:
        return (argument.name,)
    return tuple(f"{argument.name}.{place}" for place in range(argument.type.size or _LIST_LENGTH))


Accepts = Callable[[Call], str]
"""Returns why a call is refused; empty if it is accepted."""


class FinalRefusal(str):
    """The reason why no further call can be tried."""


__all__ = [
    "Accepts",
    "FinalRefusal",
    "candidates",
    "completed",
    "unlike_calls",
    "unmakable",
    "with_dtypes",
    "with_values",
]

"""Splits a large call into calls on parts of its inputs, along the size that was raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from opschema_cli.verify.binding import UnboundError
from opschema_cli.verify.elements import unravel
from opschema_cli.verify.large.growth import call_at, most_elements, size_of
from opschema_cli.verify.large.tensors import BLOCK, same_everywhere, unlike
from opschema_cli.verify.loading import ITS_OWN, RefusedError
from opschema_cli.verify.model import Call, Growth, Input

Tensors: TypeAlias = Mapping[str, Tensor]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Function: TypeAlias = Callable[[Call, dict[str, Tensor]], dict[str, Tensor]]
"""Calls the op with tensors; its outputs by name, and inputs that the call may change as ``input:NAME``."""

_PARTS, _SMALL_PARTS = 64, 3


class NoPartsError(Exception):
    """An op whose outputs cannot be computed in parts; the text says why."""


class Axis(NamedTuple):
    """The axis of a tensor that a size is along, and its length for each unit of the size."""

    number: int
    rate: int

    def part(self, tensor: Tensor, start: int, stop: int) -> Tensor:
        """The part of a tensor that belongs to a range of the size."""
        return tensor.narrow(self.number, start * self.rate, (stop - start) * self.rate)


class Parts(NamedTuple):
    """The parts of the calls of a growth: the axes of inputs and outputs along the size, for those that have one, and the bytes of
    all outputs at the larger size of the growth.
    """

    growth: Growth
    inputs: dict[str, Axis]
    outputs: dict[str, Axis]
    weight: int

    def ranges(self, call: Call) -> list[tuple[int, int]]:
        """The ranges of the size that the parts of a call have: first the last ones, where an index has overflowed."""
        found = _ranges(size_of(self.growth, call), part_size(self.growth, call))
        return [*found[-2:][::-1], *found[:-2]]

    def of(self, inputs: Tensors, start: int, stop: int) -> tuple[Call, dict[str, Tensor]]:
        """The call on a part, and copies of the inputs' parts.

        Raises:
            NoPartsError: there is no such call.
        """
        return _part(self.growth, self.inputs, inputs, start, stop)

    def difference(self, name: str, whole: Tensor, part: Tensor, start: int) -> tuple[int, int]:
        """Return the number of elements in which a part of an output differs from a call on the part, and the flat index of the
        first one in the entire output.
        """
        axis, rate = self.outputs[name]
        own = whole.narrow(axis, start * rate, part.shape[axis])
        count, first = unlike(own, part)
        at = list(unravel(max(first, 0), part.shape))
        at[axis] += start * rate
        return count, _ravel(at, whole.shape)

    def output_bytes(self, call: Call) -> int:
        """The bytes of all outputs of a call."""
        return self.weight * size_of(self.growth, call) // self.growth.sizes[1]


def part_size(growth: Growth, call: Call) -> int:
    """The size of a part of a call."""
    whole = most_elements(call)
    return max(1, size_of(growth, call) * min(BLOCK, whole // _PARTS) // whole)


def find_parts(growth: Growth, draw: Callable[[Call], dict[str, Tensor]], run: Function) -> Parts:
    """The parts of an op, tried on the larger call of the growth.

    Raises:
        NoPartsError: its outputs cannot be computed in parts.
        Exception: what the op raises.
    """
    inputs = _axes(_shapes(growth.fewer.inputs), _shapes(growth.more.inputs), growth.sizes)
    size = growth.sizes[1]
    whole = run(growth.more, draw(growth.more))
    ranges = _ranges(size, max(1, size // _SMALL_PARTS))
    drawn = draw(growth.more)
    try:
        found = [run(*_part(growth, inputs, drawn, start, stop)) for start, stop in ranges]
    except (*ITS_OWN, UnboundError, RefusedError) as error:
        raise NoPartsError("it refuses calls on parts of its inputs") from error
    stop = ranges[0][1]
    outputs = _axes(_shapes_of(found[0]), _shapes_of(whole), (stop, size))
    lone = next((name for name in whole if name not in outputs), None)
    if lone is not None:
        raise NoPartsError(f"no part of `{lone}` belongs to a part of the inputs")
    parts = Parts(growth, inputs, outputs, sum(y.nbytes for y in whole.values()))
    for (start, stop), part in zip(ranges, found, strict=True):
        own = {name: outputs[name].part(y, start, stop) for name, y in whole.items()}
        if not same_everywhere(own, part):
            raise NoPartsError("a part of its outputs depends on other parts of its inputs")
    return parts


def _part(
    growth: Growth, axes: Mapping[str, Axis], inputs: Tensors, start: int, stop: int
) -> tuple[Call, dict[str, Tensor]]:
    call = call_at(growth, stop - start)
    if call is None:
        raise NoPartsError("a part of its inputs is not a valid call of it")
    cut = {name: axes[name].part(x, start, stop) if name in axes else x for name, x in inputs.items()}
    return call, {name: x.clone(memory_format=torch.contiguous_format) for name, x in cut.items()}


def _axes(fewer: Shapes, more: Shapes, sizes: tuple[int, int]) -> dict[str, Axis]:
    """The axis along the size of each tensor that has one.

    Raises:
        NoPartsError: a tensor has two, or one that is no multiple of the size.
    """
    found: dict[str, Axis] = {}
    for name, shape in more.items():
        other = fewer.get(name, ())
        if len(other) != len(shape):
            raise NoPartsError(f"the rank of `{name}` changes with the size")
        along = [number for number, size in enumerate(shape) if size != other[number]]
        if not along:
            continue
        number, rate = along[0], shape[along[0]] // sizes[1]
        if len(along) > 1 or (other[number], shape[number]) != (rate * sizes[0], rate * sizes[1]):
            raise NoPartsError(f"`{name}` has no axis that is a multiple of the size alone")
        found[name] = Axis(number, rate)
    return found


def _shapes(tensors: Iterable[Input]) -> Shapes:
    return {spec.name: spec.shape for spec in tensors}


def _shapes_of(tensors: Tensors) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _ranges(size: int, step: int) -> list[tuple[int, int]]:
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def _ravel(at: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for place, size in zip(at, shape, strict=True):
        index = index * size + place
    return index

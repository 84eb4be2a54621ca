"""The inputs of a cell, drawn on the CPU from the cell's name alone: the same bits in every process and on every machine.

Normal numbers are sums of integers, and not torch's own, whose last bits depend on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec
import torch
from torch import Generator, Tensor

from opschema_cli.verify.cells import alike_integers
from opschema_cli.verify.model import Cell, Input, Layout, Values

OFFSET = 3
"""Elements before the first one of a strided input, in its storage."""

_CHUNK = 1 << 13
_SMALL = 2.0**-10
_DEFAULT_LOW, _DEFAULT_SPAN = -8, 16
_WIDE = 5
"""Wide numbers are normal ones times 1, 2, ... 16."""
_WIDE_INTEGER = 1 << 25
_LEAST, _LARGEST, _ROW_STEP = 3, 17, 3
"""Large numbers are normal ones times 2**4 to 2**17, or less if float16 or a smaller dtype requires it; the exponents decrease
by 3 per row.
"""
_E8M0_EXPONENTS = (-4, 5)


def make_inputs(cell: Cell) -> dict[str, Tensor]:
    """The tensors of the cell's call by name. Each is drawn from its own generator, so none depends on the others.

    An integer input beside inputs of other dtypes, or marked as one, may be an index: without bounds it is drawn from 0 to
    15, below every size of the others' axes. Other integers lie from -8 to 7.

    Raises ValueError for a dtype that this torch lacks or that cannot be drawn, and for bounds that hold no value.
    """
    specs = bounded_inputs(cell.call.inputs)
    return {spec.name: make_input(spec, cell, _values(spec, specs, cell.values)) for spec in specs}


def _values(spec: Input, specs: Sequence[Input], values: Values) -> Values:
    """Return the kind of values of an input. Only the largest floating-point input has large ones, since all products of two of
    them would overflow. Only the first integer input is wide, since others may be shifts or exponents.
    """
    if values == "wide" and "float" not in spec.dtype:
        return "wide" if spec is specs[0] and alike_integers(specs) else "normal"
    if values != "large":
        return values
    floats = [other for other in specs if "float" in other.dtype]
    largest = max(floats, key=lambda other: math.prod(other.shape), default=None)
    return "large" if spec == largest else "normal"


def bounded_inputs(inputs: Sequence[Input]) -> list[Input]:
    """The inputs, with bounds for those that may be indices into others."""
    return [_bounded(spec, inputs) for spec in inputs]


def _bounded(spec: Input, all_inputs: Sequence[Input]) -> Input:
    """An input with bounds, if it may be an index into another one."""
    if spec.low is not None or spec.high is not None or dtype_of(spec.dtype) not in _INTEGERS:
        return spec
    others = [other for other in all_inputs if other is not spec and (spec.index or other.dtype != spec.dtype)]
    if spec.ascending and (end := _length_of_parts(spec, others)) is not None:
        return msgspec.structs.replace(spec, low=0, high=end + 1)
    others = [other for other in others if not (spec.index and other.index)] or others
    if not others:
        return spec
    sizes = [size for other in others for size in other.shape if size]
    return msgspec.structs.replace(spec, low=0, high=min([_DEFAULT_SPAN, *sizes]))


def _length_of_parts(spec: Input, others: Sequence[Input]) -> int | None:
    """Return the axis size of the largest other input that an ascending input splits into parts, or None if there is none."""
    axis = len(spec.shape) - 1
    largest = max(others, key=lambda other: math.prod(other.shape), default=None)
    return largest.shape[axis] if largest is not None and 0 <= axis < len(largest.shape) else None


def make_input(spec: Input, cell: Cell, values: Values) -> Tensor:
    """Make one input of a cell with these values; see :func:`make_inputs`."""
    generator = Generator().manual_seed(_seed(cell.data_key, spec.name))
    flat = _draw(spec, dtype_of(spec.dtype), values, generator)
    return laid_out(flat.view(spec.shape), cell.layout, mutated=spec.mutated)


def place(tensors: Mapping[str, Tensor], device: torch.device | str) -> dict[str, Tensor]:
    """Copies on a device, each in a storage of its own, with layout, offset and gaps kept (``Tensor.to`` drops gaps)."""
    return {name: _placed(tensor, device) for name, tensor in tensors.items()}


def dtype_of(name: str) -> torch.dtype:
    """Return the torch dtype with a name such as ``bfloat16``. Raises ValueError if such inputs cannot be drawn."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch {torch.__version__} has no dtype `{name}`")
    if dtype.is_complex or (dtype.is_floating_point and name.startswith("float4")) or not _has_range(dtype):
        raise ValueError(f"inputs of dtype `{name}` cannot be drawn")
    return dtype


def storage_bytes(tensor: Tensor) -> Tensor:
    """The entire storage below a tensor as bytes, sharing it."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def view_like(storage: Tensor, tensor: Tensor) -> Tensor:
    """View bytes like the tensor views its own storage: same dtype, shape, strides and offset."""
    return torch.empty(0, dtype=tensor.dtype, device=storage.device).set_(
        storage.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
    )


def _placed(tensor: Tensor, device: torch.device | str) -> Tensor:
    return view_like(storage_bytes(tensor).to(device, copy=True), tensor)


def _has_range(dtype: torch.dtype) -> bool:
    return dtype is torch.bool or dtype.is_floating_point or dtype in _INTEGERS


_INTEGERS = {
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
}


def _seed(key: str, name: str) -> int:
    """The CPU generator uses the low 32 bits of its seed."""
    return int.from_bytes(blake2b(f"{key}\0{name}".encode(), digest_size=4).digest(), "little")


def _draw(spec: Input, dtype: torch.dtype, values: Values, generator: Generator) -> Tensor:
    """The elements of an input, one after the other."""
    count = math.prod(spec.shape)
    if dtype is torch.bool:
        return torch.empty(count, dtype=torch.uint8).random_(0, 2, generator=generator).to(torch.bool)
    if not dtype.is_floating_point:
        return _integers(spec, dtype, count, values, generator)
    if values == "zeros":
        return torch.full((count,), _nearest_to_zero(spec)).to(dtype)
    drawn = _floats(spec, dtype, values, generator)
    if values == "special" and count:
        _Specials(spec, drawn.view(-1, spec.shape[-1] if spec.shape else 1), generator).write()
    return drawn


def _integers(spec: Input, dtype: torch.dtype, count: int, values: Values, generator: Generator) -> Tensor:
    info = torch.iinfo(dtype)
    low, high = _wide_bounds(info) if values == "wide" else _integer_bounds(spec, info)
    drawn = torch.empty(count, dtype=torch.int64).random_(low, high, generator=generator)
    if spec.ascending and count:
        rows = drawn.view(-1, spec.shape[-1] if spec.shape else 1)
        rows[:, -1], rows[:, 0] = high - 1, low
        drawn = rows.sort(dim=-1).values.view(-1)
    return drawn.to(dtype)


def _wide_bounds(info: torch.iinfo) -> tuple[int, int]:
    """Return bounds beyond the exact integers of float32 or of half the bits, within which a sum of a few numbers does not
    overflow.
    """
    end = min(_WIDE_INTEGER, info.max * 3 // 4) + 1
    return max(1 - end, info.min), end


def _integer_bounds(spec: Input, info: torch.iinfo) -> tuple[int, int]:
    """Return the first value and the one after the last, limited to the range of int64."""
    least, beyond = info.min, min(info.max, torch.iinfo(torch.int64).max - 1) + 1
    if spec.low is not None:
        low = math.ceil(spec.low)
    elif spec.high is not None:
        low = math.ceil(spec.high) - _DEFAULT_SPAN
    else:
        low = _DEFAULT_LOW
    low = max(low, least)
    high = min(low + _DEFAULT_SPAN if spec.high is None else math.ceil(spec.high), beyond)
    if low >= high:
        raise ValueError(f"input `{spec.name}`: no {spec.dtype} lies in [{spec.low}, {spec.high})")
    return low, high


def _floats(spec: Input, dtype: torch.dtype, values: Values, generator: Generator) -> Tensor:
    out = torch.empty(math.prod(spec.shape), dtype=dtype)
    for start in range(0, out.numel(), _CHUNK):
        part = out[start : start + _CHUNK]
        drawn = _numbers(spec, dtype, part.numel(), generator)
        part.copy_(drawn if _both_bounds(spec) else _changed(drawn, spec, dtype, values, start, generator))
    return out


def _both_bounds(spec: Input) -> bool:
    return spec.low is not None and spec.high is not None


def _changed(
    drawn: Tensor, spec: Input, dtype: torch.dtype, values: Values, start: int, generator: Generator
) -> Tensor:
    """Return nearly normal numbers made wide, large or coarse, within the one bound if there is one."""
    base = next((bound for bound in (spec.low, spec.high) if bound is not None), 0.0)
    centred = drawn - base
    if values == "wide":
        powers = torch.empty(drawn.numel(), dtype=torch.int64).random_(0, _WIDE, generator=generator)
        centred = torch.ldexp(centred, powers)
    elif values == "large":
        centred = _scaled_rows(centred, spec, dtype, start)
    elif values == "ties":
        centred = centred.mul(2).round().mul(0.5)
    else:
        return drawn
    return centred + base if base else centred


def _scaled_rows(numbers: Tensor, spec: Input, dtype: torch.dtype, start: int) -> Tensor:
    """Each row times a power of two, the first times the largest; the numbers of every third row are positive or zero unless
    the input has bounds.
    """
    row = torch.arange(start, start + numbers.numel()).div(spec.shape[-1] if spec.shape else 1, rounding_mode="floor")
    top = min(math.floor(math.log2(torch.finfo(dtype).max)) - 1, _LARGEST)
    powers = top - (row * _ROW_STEP) % max(top - _LEAST, 1)
    positive = numbers.abs() if spec.low is None and spec.high is None else numbers
    return torch.ldexp(torch.where(row % 3 == 0, positive, numbers), powers)


def _numbers(spec: Input, dtype: torch.dtype, count: int, generator: Generator) -> Tensor:
    low, high = spec.low, spec.high
    if low is not None and high is not None:
        if not low <= high:
            raise ValueError(f"input `{spec.name}`: nothing lies in [{low}, {high}]")
        return _uniform(count, generator).mul_(high - low).add_(low).clamp_(low, high)
    if low is not None:
        return _normal(count, dtype, generator).abs_().add_(low)
    if high is not None:
        return _normal(count, dtype, generator).abs_().neg_().add_(high)
    if torch.finfo(dtype).eps == 1.0:
        exponents = torch.empty(count, dtype=torch.int64).random_(*_E8M0_EXPONENTS, generator=generator)
        return torch.ldexp(torch.ones(count), exponents)
    return _normal(count, dtype, generator)


def _normal(count: int, dtype: torch.dtype, generator: Generator) -> Tensor:
    """Return nearly normal numbers with mean 0 and variance 1: the sum of four 16-bit integers (Irwin-Hall), exact except for
    its scale.
    """
    raw = torch.empty(count, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    total = raw.view(torch.int16).view(-1, 4).sum(-1, dtype=torch.int32)
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    return total.mul_(2).add_(4).to(wide).mul_(math.sqrt(3.0) / 2**17)


def _uniform(count: int, generator: Generator) -> Tensor:
    raw = torch.empty(count, dtype=torch.int64).random_(0, 2**53, generator=generator)
    return raw.to(torch.float64).mul_(2.0**-53)


def _nearest_to_zero(spec: Input) -> float:
    low = -math.inf if spec.low is None else spec.low
    high = math.inf if spec.high is None else spec.high
    return max(low, min(0.0, high))


class _Specials:
    """Writes special values into rows: each kind into a row of its own if there are rows enough, else beside each other.

    Rows of zeros (both signs), of small numbers and of denormals are filled; NaN, infinities and the largest finite number
    stand at a random place and at the last. Only values that the dtype has and the bounds allow are written.
    """

    def __init__(self, spec: Input, rows: Tensor, generator: Generator) -> None:
        self._spec = spec
        self._rows = rows
        self._generator = generator
        self._info = torch.finfo(rows.dtype)

    def write(self) -> None:
        """Zeros come first, for they alone get a row wherever there are two."""
        count, columns = self._rows.shape
        kinds = [kind for kind in ("nan", "inf", "small", "denormal", "max", "-inf") if self._allowed(kind)]
        step = max(count // (len(kinds) + 1), 1)
        first = self._random(count)
        if not self._allowed("zero"):
            others = count
        elif count == 1:
            kinds.insert(2, "zero")
            others = 1
        else:
            self._fill("zero", self._rows[first])
            others = count - 1
        start = self._random(columns)
        for index, kind in enumerate(kinds):
            row = self._rows[(first + count - others + (index % others) * step) % count]
            if len(kinds) <= others:
                self._alone(kind, row, start)
            elif index // others < columns:
                self._fill(kind, row[(start + index // others) % columns].view(1))

    def _random(self, end: int) -> int:
        return int(torch.empty((), dtype=torch.int64).random_(0, end, generator=self._generator))

    def _alone(self, kind: str, row: Tensor, column: int) -> None:
        if kind in ("small", "denormal"):
            self._fill(kind, row)
        else:
            self._fill(kind, row[column : column + 1])
            self._fill(kind, row[-1:])

    def _fill(self, kind: str, place: Tensor) -> None:
        place.copy_(self._values(kind, place))

    def _values(self, kind: str, place: Tensor) -> Tensor:
        count = place.numel()
        if kind == "small":
            return place.to(torch.float64).mul_(_SMALL)
        if kind == "denormal":
            return self._denormals(count)
        values = torch.full((count,), self._value(kind), dtype=torch.float64)
        if kind == "zero":
            values[1::2] = -0.0
        return values

    def _denormals(self, count: int) -> Tensor:
        """Multiples of the least denormal, in the upper half of the denormals where they have halves."""
        below = round(1 / self._info.eps)
        raw = torch.empty(count, dtype=torch.int64).random_(below // 2, below, generator=self._generator)
        return raw.to(torch.float64).mul_(self._info.eps).mul_(self._info.smallest_normal)

    def _value(self, kind: str) -> float:
        named = {"zero": 0.0, "max": self._info.max, "denormal": self._info.smallest_normal / 2}
        return named[kind] if kind in named else float(kind)

    def _allowed(self, kind: str) -> bool:
        bounded = self._spec.low is not None or self._spec.high is not None
        if kind == "small":
            return not bounded
        value = self._value(kind)
        if bounded and not self._within(value):
            return False
        stored = float(torch.tensor(value, dtype=torch.float64).to(self._rows.dtype))
        return stored == value or (math.isnan(stored) and math.isnan(value))

    def _within(self, value: float) -> bool:
        low = -math.inf if self._spec.low is None else self._spec.low
        high = math.inf if self._spec.high is None else self._spec.high
        return math.isfinite(value) and low <= value <= high


def laid_out(tensor: Tensor, layout: Layout, *, mutated: bool = False) -> Tensor:
    """Return a contiguous tensor's values in another layout, with NaN or the largest value between and around them. An expanded
    tensor repeats the first row; tensors that a call changes are not expanded, because torch's own operators refuse to write to
    them.
    """
    if layout == "contiguous" or (layout == "expanded" and (mutated or not tensor.dim())):
        return tensor
    if layout == "expanded":
        return tensor[:1].clone().expand(tensor.shape)
    strides, offset = _strides_of(tensor, layout), 1 if layout == "offset" else OFFSET
    count = 1 + sum(max(size - 1, 0) * stride for size, stride in zip(tensor.shape, strides, strict=True))
    view = _gap(tensor.dtype).repeat(offset + count + 1).as_strided(tensor.shape, strides, offset)
    view.copy_(tensor)
    return view


def _strides_of(tensor: Tensor, layout: Layout) -> list[int]:
    strides, last = list(tensor.stride()), tensor.shape[-1] if tensor.dim() else 1
    if layout == "strided":
        return [2 * stride for stride in strides]
    if layout == "sliced" and last:
        return [*(stride // last * (last + OFFSET) for stride in strides[:-1]), *strides[-1:]]
    if layout == "transposed" and len(strides) > 1:
        return [*strides[:-2], 1, tensor.shape[-2]]
    return strides


def _gap(dtype: torch.dtype) -> Tensor:
    gap: float | int = True
    if dtype.is_floating_point:
        gap = math.nan
    elif dtype is not torch.bool:
        gap = min(torch.iinfo(dtype).max, torch.iinfo(torch.int64).max)
    return torch.tensor(gap).to(dtype)

"""The functions that shape rules and roofline formulas may call, and which layer may call which.

Each takes the :class:`~opschema_cli.schema.evaluate.Run` it works for first and pays it for what it
reads, so that no call outlasts the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from opschema_cli.schema.budget import Run
    from opschema_cli.schema.values import Tensor, Value

_MAX_DIGITS = 1024
"""Maximum length of a text passed to ``int()``; 1024 hexadecimal digits are 4096 bits."""

_MISSING: Any = object()

_STR_COST = 16
"""Steps that ``str()`` pays per item: writing a number in decimal is dear."""


class Function(msgspec.Struct, frozen=True):
    """A function of the rule language; ``type`` is set where its bare name is a type (``int``)."""

    call: Callable[..., Any]
    type: type | None = None


class Functions(Mapping[str, Function]):
    """A frozen table of functions by name; two tables are equal only if they are the same object."""

    __slots__ = ("_functions",)

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = dict(functions)

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def only(self, *names: str) -> Functions:
        """The table of just these functions."""
        return Functions({name: self[name] for name in names})


# Shapes -----------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all ``shapes`` broadcast to, like :func:`torch.broadcast_shapes`.

    Raises:
        ValueError: they do not broadcast, or a length is negative.
    """
    result: list[int] = []
    for shape in shapes:
        if any(length < 0 for length in shape):
            raise ValueError(f"the shape {tuple(shape)} has a negative length")
        result[:0] = [1] * (len(shape) - len(result))
        for axis, length in enumerate(reversed(shape), 1):
            if result[-axis] == 1:
                result[-axis] = length
            elif length not in (1, result[-axis]):
                raise ValueError(f"lengths {result[-axis]} and {length} at axis {-axis} do not broadcast")
    return tuple(result)


def is_broadcastable_to(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether ``source`` broadcasts to just ``target``: from the right, each length is equal or 1."""
    if len(source) > len(target):
        return False
    return all(have in (1, want) for have, want in zip(reversed(source), reversed(target), strict=False))


def dim_range_validity(x: Tensor, dim: int | Iterable[int] | None) -> bool:
    """Whether every axis in ``dim`` lies in ``[-x.ndim, x.ndim)``; None, for all axes, does."""
    if dim is None:
        return True
    return all(-x.ndim <= axis < x.ndim for axis in ([dim] if isinstance(dim, int) else dim))


def dim_uniqueness(x: Tensor, dim: int | Sequence[int] | None) -> bool:
    """Whether no two axes in ``dim`` are the same one, counted from either end."""
    if dim is None or isinstance(dim, int):
        return True
    return len({_from_front(axis, x.ndim) for axis in dim}) == len(dim)


def reduced_axes(x: Tensor, dim: int | Sequence[int] | None) -> frozenset[int]:
    """Return the axes, 0-based, that a reduction over ``dim`` removes: all of them for None or an empty sequence."""
    return _axes(x.ndim, dim)


def reduced_shape(
    shape: Sequence[int],
    dim: int | Sequence[int] | None,
    keepdim: bool = False,
    empty_dim: str = "full",
) -> tuple[int, ...]:
    """``shape`` after a reduction over ``dim``; with ``keepdim`` a reduced axis stays with length 1.

    An empty ``dim`` reduces every axis, or none where ``empty_dim`` is ``"noop"``.
    """
    if empty_dim == "noop" and isinstance(dim, (list, tuple)) and not dim:
        return tuple(shape)
    axes = _axes(len(shape), dim)
    if keepdim:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def _axes(ndim: int, dim: int | Sequence[int] | None) -> frozenset[int]:
    if isinstance(dim, int):
        return frozenset({dim % ndim})
    if isinstance(dim, (list, tuple)) and dim:
        return frozenset(_from_front(axis, ndim) for axis in dim)
    return frozenset(range(ndim))


def _from_front(axis: int, ndim: int) -> int:
    if not isinstance(axis, (int, float)):  # text % ndim would format the text, at any width it asks for
        raise TypeError(f"an axis is a number, not {type(axis).__name__!r}")
    return axis % ndim


# Python's own -----------------------------------------------------------------------------------------


def _plain(function: Callable[..., Any]) -> Function:
    """A function whose work is bounded by the size of its arguments."""

    def call(run: Run, *arguments: Value, **named: Value) -> Value:
        for argument in (*arguments, *named.values()):
            run.weigh(argument)
        result: Value = function(*arguments, **named)
        return result

    return Function(call, function if isinstance(function, type) else None)


def _iterating(function: Callable[..., Any]) -> Function:
    """A function that goes through its arguments, ranges too; generators pay for themselves."""
    plain = _plain(function).call

    def call(run: Run, *arguments: Value, **named: Value) -> Any:
        for argument in (*arguments, *named.values()):
            if isinstance(argument, range):
                run.charge(len(argument))
        return plain(run, *arguments, **named)

    return Function(call)


def _len(run: Run, value: Value) -> int:
    return len(value)  # type: ignore[arg-type]


def _all(run: Run, values: Value) -> bool:
    return all(run.stream(values))


def _any(run: Run, values: Value) -> bool:
    return any(run.stream(values))


def _int(run: Run, *arguments: Any, **named: Any) -> int:
    if arguments and isinstance(arguments[0], str):
        run.limit(len(arguments[0]), _MAX_DIGITS)
    return int(*arguments, **named)


def _str(run: Run, value: Value = "") -> str:
    _refuse_generator(value)
    run.weigh(value, _STR_COST)
    if isinstance(value, int):
        run.charge(value.bit_length() >> 6)
    return str(value)


def _type(run: Run, value: Value) -> type:
    _refuse_generator(value)
    return type(value)


def _refuse_generator(value: object) -> None:
    if isinstance(value, GeneratorType):
        raise TypeError("a generator can only be iterated here")


def _tuple(run: Run, values: Value = ()) -> tuple[Value, ...]:
    return tuple(run.items(values))


def _list(run: Run, values: Value = ()) -> list[Value]:
    return run.items(values)


def _set(run: Run, values: Value = ()) -> set[Value]:
    return run.make_set(run.items(values))


def _abs(run: Run, value: Any) -> Any:
    return abs(value)


def _extreme(choose: Callable[..., Any]) -> Function:
    """``min`` or ``max``, of several arguments or of one iterable."""

    def call(run: Run, *arguments: Value, default: Value = _MISSING) -> Any:
        values = run.items(arguments[0]) if len(arguments) == 1 else list(arguments)
        run.weigh(values)
        if default is not _MISSING and not values:
            return default
        return choose(values)

    return Function(call)


def _sorted(run: Run, values: Value, *, reverse: bool = False) -> list[Value]:
    items = run.items(values)
    run.weigh(items, len(items).bit_length())
    return sorted(items, reverse=reverse)


def _sum(run: Run, values: Value, start: Any = 0) -> Any:
    items = run.items(values)
    if all(isinstance(item, (int, float)) for item in (start, *items)):
        return sum(items, start)
    if isinstance(start, str):
        raise TypeError("sum() can't sum strings")
    for item in items:
        start = run.plus(start, item)
    return start


def _product(run: Run, values: Value, start: Any = 1) -> Any:
    for item in run.items(values):
        start = run.times(start, item)
    return start


def _range(run: Run, *bounds: Any) -> range:
    return range(*bounds)


_ALL = Functions(
    {
        "abs": Function(_abs),
        "all": Function(_all),
        "any": Function(_any),
        "bool": _plain(bool),
        "broadcast_shapes": _iterating(broadcast_shapes),
        "ceil": _plain(math.ceil),
        "dim_range_validity": _iterating(dim_range_validity),
        "dim_uniqueness": _iterating(dim_uniqueness),
        "float": _plain(float),
        "floor": _plain(math.floor),
        "int": Function(_int, int),
        "is_broadcastable_to": _iterating(is_broadcastable_to),
        "isinstance": _plain(isinstance),
        "len": Function(_len),
        "list": Function(_list, list),
        "log2": _plain(math.log2),
        "max": _extreme(max),
        "min": _extreme(min),
        "prod": Function(_product),
        "product": Function(_product),
        "range": Function(_range, range),
        "reduced_axes": _iterating(reduced_axes),
        "reduced_shape": _iterating(reduced_shape),
        "set": Function(_set, set),
        "sorted": Function(_sorted),
        "sqrt": _plain(math.sqrt),
        "str": Function(_str, str),
        "sum": Function(_sum),
        "tuple": Function(_tuple, tuple),
        "type": Function(_type, type),
    }
)
_ROOFLINE_ONLY = {"ceil", "floor", "log2", "prod", "product", "sqrt"}

SHAPE_FUNCTIONS = _ALL.only(*(name for name in _ALL if name not in _ROOFLINE_ONLY))
"""Functions that shape rules may call: TileOPs' set (``scripts/validate_manifest.py``), and bool, str, sum, sorted."""

ROOFLINE_VARS_FUNCTIONS = _ALL.only(
    *("abs", "bool", "ceil", "float", "floor", "int", "isinstance", "len", "list", "log2", "max", "min"),
    *("prod", "product", "range", "set", "sqrt", "sum", "tuple"),
)
"""Functions that ``roofline.vars`` may call: TileOPs' ``roofline.md`` §4.4.4, and prod, sqrt."""

ROOFLINE_ARITHMETIC_FUNCTIONS = _ALL.only("ceil", "floor", "log2")
"""Functions that ``flops`` and ``bytes`` may call: TileOPs' ``roofline.md`` §4.4.4."""

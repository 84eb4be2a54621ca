"""Calls of torch's functions on tensor metadata: the overload that is called, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from opschema_cli.evaluation.execution.values import Device, DtypeValue, Opaque, TensorValue
from opschema_cli.evaluation.tensors.promotion import number_dtype, promoted
from opschema_cli.evaluation.tensors.semantics import semantics
from opschema_cli.evaluation.tensors.table import REQUIRED, Overload, Param, Table, parsed_signature, torch_table

_SPELLINGS = {"axis": "dim", "keepdims": "keepdim", "self": "input", "x": "input", "x1": "input", "x2": "other"}
_KEEP_UNKNOWN_SIZES = frozenset({"pointwise.same", "creation.sized"})
NO_OVERLOAD = Opaque("no overload of this function is known for these arguments")


class Bound(msgspec.Struct, frozen=True):
    """The arguments of a call by parameter name; missing ones have their defaults."""

    params: tuple[Param, ...]
    values: Mapping[str, object]

    @property
    def tensors(self) -> list[TensorValue]:
        """The tensors, in parameter order."""
        found: list[TensorValue] = []
        for param in self.params:
            value = self.values[param.name]
            if param.code == "T" and isinstance(value, TensorValue):
                found.append(value)
            elif param.code == "L" and isinstance(value, list | tuple):
                found.extend(value)
        return found

    @property
    def numbers(self) -> list[object]:
        """The Python numbers that are passed for tensors or numbers."""
        found = [self.values[param.name] for param in self.params if param.code == "n"]
        return [value for value in found if value is not None]

    @property
    def dtype(self) -> object:
        """The requested dtype."""
        return next((self.values[param.name] for param in self.params if param.code == "d"), None)


def call_operator(name: str, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
    """The result of a call: a tensor, a tuple of tensors, or opaque.

    Raises:
        RefusedError: torch refuses the arguments.
    """
    table = torch_table()
    fitting: list[tuple[Overload, Bound]] = []
    for overload in table.operators.get(name, ()):
        params = parsed_signature(table.signatures[overload.signature])
        bound = bind(params, positional, keywords)
        if bound is not None:
            fitting.append((overload, bound))
    if not fitting:
        return NO_OVERLOAD
    if len(fitting) > 1 and _is_open((*positional, *keywords.values())):
        return Opaque("it is not known which overload is called")
    return result_of(table, name, *fitting[0])


def _is_open(values: Sequence[object]) -> bool:
    return any(isinstance(value, Opaque) for value in values)


def result_of(table: Table, name: str, overload: Overload, bound: Bound) -> object:
    """The result of an overload of an operator.

    Raises:
        RefusedError: torch refuses the arguments.
    """
    tensors = bound.tensors
    found = shapes_of(overload.shape, bound)
    if isinstance(found, Opaque):
        return found
    base = base_dtype(overload.dtype, tensors, bound.numbers)
    dtypes = [table.mapped(table.maps[index], base) for index in overload.maps]
    given = bound.dtype
    if given is not None:
        dtypes[0] = given.name if isinstance(given, DtypeValue) else None
    device = _device(bound) if name not in _TO_THE_HOST else None
    if isinstance(found, list):
        return tuple(TensorValue(shape, dtypes[0], device) for shape in found)
    made = tuple(TensorValue(found, dtype, device) for dtype in dtypes)
    return made[0] if len(made) == 1 else made


_TO_THE_HOST = frozenset({"cpu", "to_mkldnn"})
"""Operators whose results are always on the host."""


def _device(bound: Bound) -> Device | None:
    """Return the device of the results: that of all tensor arguments, unless another one is requested."""
    found = {tensor.device for tensor in bound.tensors}
    return found.pop() if len(found) == 1 and bound.values.get("device") is None else None


def shapes_of(name: str, bound: Bound) -> tuple[object, ...] | list[tuple[object, ...]] | Opaque:
    """The shape of each result, or the shapes of as many results, after the semantics of that name.

    Raises:
        RefusedError: torch refuses the arguments.
    """
    found = semantics()[name]
    tensors = bound.tensors
    reads = found.reads(frozenset(bound.values)) or {}
    options = {option: bound.values[param] for option, param in reads.items()}
    open_sizes = any(_has_open(tensor.shape) for tensor in tensors)
    opaque = next((value for value in options.values() if _has_open(value)), None)
    if (open_sizes or opaque is not None) and name not in _KEEP_UNKNOWN_SIZES:
        return Opaque("a size or parameter is not known")
    if isinstance(opaque, Opaque):
        return opaque
    if opaque is not None and name == "creation.sized":
        return tuple(opaque) if isinstance(opaque, list | tuple) else Opaque("a size")
    return found.function([tensor.shape for tensor in tensors], **options)  # type: ignore[return-value]


def _has_open(value: object) -> bool:
    """Whether a size, or one of several, is unknown."""
    if isinstance(value, list | tuple):
        return any(map(_has_open, value))
    return not isinstance(value, int | float | complex | str | DtypeValue | None)


def base_dtype(rule: str, tensors: Sequence[TensorValue], numbers: Sequence[object]) -> str | None:
    """Return the dtype that the maps of an overload start from."""
    match rule:
        case "first" | "equal":
            truths = tensors[0].dtype == "bool" and any(isinstance(number, bool) for number in numbers)
            return None if truths else tensors[0].dtype  # measured with other numbers, which make an integer of it
        case "last":
            return tensors[-1].dtype
        case "tensors":
            return promoted(tensors)
        case "others":
            return promoted(tensors[1:])
        case "others-all":
            return promoted(tensors[1:], numbers)
        case "all":
            return promoted(tensors, numbers)
        case "first-number":
            return promoted(tensors, numbers[:1])
        case "numbers":
            return promoted((), numbers)
        case "value":
            return number_dtype(numbers[-1]) if numbers else None
    return "float32"


# Arguments


def bind(params: tuple[Param, ...], positional: Sequence[object], keywords: Mapping[str, object]) -> Bound | None:
    """Bind the arguments to an overload with these parameters; None if they do not fit."""
    placed = [param for param in params if not param.keyword_only]
    rest = list(positional)
    if len(rest) >= len(placed) and placed and placed[-1].code[0] == "I" and _is_size(rest[len(placed) - 1 :]):
        rest[len(placed) - 1 :] = [tuple(rest[len(placed) - 1 :])]
    if len(rest) > len(placed):
        return None
    values = dict(zip((param.name for param in placed), rest, strict=False))
    names = {param.name for param in params}
    for word, value in keywords.items():
        name = word if word in names else _SPELLINGS.get(word, word)
        if name not in names or name in values:
            return None
        values[name] = value
    for param in params:
        if param.name not in values:
            if param.default is REQUIRED:
                return None
            values[param.name] = param.default
        elif not takes(param, values[param.name]):
            return None
    return Bound(params, values)


def _is_size(values: Sequence[object]) -> bool:
    """Whether values are sizes of one shape; a single unknown value may be the shape itself."""
    plain = bool(values) and all(isinstance(value, int | Opaque) for value in values)
    return plain and not (len(values) == 1 and isinstance(values[0], Opaque))


def takes(param: Param, value: object) -> bool:
    """Whether a parameter accepts a value; an unknown value may be anything but a tensor."""
    if value is None:
        return param.optional or param.default is None or param.code == "o"
    if isinstance(value, Opaque):
        return param.code not in "TL"
    match param.code:
        case "T":
            return isinstance(value, TensorValue)
        case "L":
            return isinstance(value, list | tuple) and all(isinstance(item, TensorValue) for item in value)
        case "I" | "I1":
            wide = param.code == "I1" and isinstance(value, int)
            return wide or (isinstance(value, list | tuple) and all(isinstance(item, int | Opaque) for item in value))
        case "d":
            return isinstance(value, DtypeValue)
        case "o":
            return not isinstance(value, TensorValue | DtypeValue)
    return isinstance(value, _PLAIN[param.code])


_PLAIN: dict[str, tuple[type, ...]] = {
    "i": (int,),
    "b": (bool,),
    "n": (bool, int, float, complex),
    "f": (float, int),
    "s": (str,),
}

"""Torch for executed code: functions and methods of tensors with known shapes and dtypes only.

Devices, strides and elements are not known. What the table does not have is not known either, and neither is the result of code
behind ``out=`` of another shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.values import DtypeValue, Native, Opaque, TensorValue
from opschema_cli.evaluation.tensors.attributes import (
    ATTRIBUTES,
    CASTS,
    COPIES,
    METHODS,
    OF_DEVICES,
    converted,
    count_of,
    dtype_attribute,
    shapes_broadcast,
    size_of,
    viewed_as,
)
from opschema_cli.evaluation.tensors.calls import call_operator
from opschema_cli.evaluation.tensors.checks import CHECKS
from opschema_cli.evaluation.tensors.limits import DtypeLimits, finfo, iinfo, limit
from opschema_cli.evaluation.tensors.promotion import is_floating, number_dtype, promote, promoted
from opschema_cli.evaluation.tensors.sizes import OpenSizeError, RefusedError
from opschema_cli.evaluation.tensors.subscripts import subscripted
from opschema_cli.evaluation.tensors.table import torch_table
from opschema_cli.evaluation.values import ExternalName

_OPERATORS: Mapping[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "@": "matmul",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "unary -": "neg",
    "unary ~": "bitwise_not",
    "unary +": "positive",
    "abs": "abs",
}
_TRANSPOSED = frozenset({"T", "mT", "mH", "H"})
_PARTS: Mapping[str, int] = {"values": 0, "indices": 1}
_DEFAULT_DTYPE = "float32"


# Functions


@cache
def _functions() -> Mapping[str, ExternalFunction]:
    found: dict[str, ExternalFunction] = {}
    for word in torch_table().functions.split():
        name, _, operator = word.partition("=")
        found[f"torch.{name}"] = _calling(operator or name)
    for name, function in _OWN.items():
        found[f"torch.{name}"] = function
    for name in torch_table().methods.split():
        found.setdefault(f"torch.Tensor.{name}", _calling(name))
    return found


def _function(name: str) -> ExternalFunction | None:
    if not name.startswith("torch."):
        return None
    if name.startswith("torch.ops.aten."):
        return _calling(name.split(".")[3])
    return _functions().get(name)


def _calling(operator: str) -> ExternalFunction:
    return lambda call: operated(call.machine, operator, call.positional, call.keywords)


def operated(machine: Caller, operator: str, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
    """Return the result of an operator in the table; torch's exceptions are raised in the executed code."""
    if operator == "view" and any(isinstance(item, DtypeValue) for item in (*positional[1:], *keywords.values())):
        return _viewed(Call(machine, tuple(positional), keywords))
    out = keywords.get("out")
    words = {name: _known(machine, value) for name, value in keywords.items() if name != "out"}
    try:
        found = call_operator(operator, [_known(machine, value) for value in positional], words)
    except RefusedError as error:
        machine.throw(error.exception, str(error))
    except OpenSizeError as error:
        return machine.opaque(str(error))
    if isinstance(found, Opaque):
        return machine.opaque(f"the result of `torch.{operator}`: {found.reason}")
    if isinstance(found, tuple):
        machine.spend(len(found))
    if out is None:
        return found
    known = isinstance(out, TensorValue) and isinstance(found, TensorValue) and out.shape == found.shape
    return out if known else machine.stop("`out` has another shape")


def _viewed(call: Call) -> object:
    """Return the result of ``tensor.view(dtype)``."""
    found = call.bound("self", "dtype") or {}
    tensor, dtype = found.get("self"), found.get("dtype")
    if not isinstance(tensor, TensorValue) or not isinstance(dtype, DtypeValue):
        return NOT_KNOWN
    return _guarded(call, lambda: viewed_as(tensor, dtype.name))


def _known(machine: Caller, value: object) -> object:
    """Return a value of a call; one of another package is unknown."""
    machine.spend(1)
    if isinstance(value, ExternalName):
        return Opaque(f"the value of `{value.name}`")
    if isinstance(value, tuple | list) and any(isinstance(item, ExternalName | tuple | list) for item in value):
        return type(value)([_known(machine, item) for item in value])
    return value


def _tensor(call: Call) -> object:
    found = call.bound("data", "dtype", "device", "requires_grad", "pin_memory")
    if not found or "data" not in found:
        return NOT_KNOWN
    data, dtype = found["data"], found.get("dtype")
    if isinstance(data, TensorValue):
        return converted(data, (dtype,))
    shape, leaves = _nested(call.machine, data)
    if shape is None or any(number_dtype(item) is None for item in leaves):
        return call.opaque("the data of a tensor")
    own = promoted((), leaves) if leaves else _DEFAULT_DTYPE
    known = None if isinstance(dtype, Opaque) else own
    return TensorValue(shape, dtype.name if isinstance(dtype, DtypeValue) else known)


def _nested(machine: Caller, data: object) -> tuple[tuple[int, ...] | None, list[object]]:
    """Return the shape of nested lists, and the numbers in them; no shape if they are not regular."""
    machine.spend(1)
    if not isinstance(data, list | tuple):
        return (), [data]
    parts = [_nested(machine, item) for item in data]
    shapes = {shape for shape, _ in parts}
    leaves = [leaf for _, found in parts for leaf in found]
    if not parts:
        return (0,), []
    inner = shapes.pop()
    return ((len(parts), *inner) if inner is not None and not shapes else None), leaves


def _size(call: Call) -> object:
    (value,) = call.positional or ((),)
    return tuple(value) if isinstance(value, list | tuple) else NOT_KNOWN


def _numel(call: Call) -> object:
    (value,) = call.positional or (None,)
    return count_of(value) if isinstance(value, TensorValue) else NOT_KNOWN


def _promote_types(call: Call) -> object:
    dtypes = [item.name for item in call.positional if isinstance(item, DtypeValue)]
    found = promote(*dtypes) if len(dtypes) == 2 else None
    return DtypeValue(found) if found is not None else call.opaque("two dtypes")


def _result_type(call: Call) -> object:
    tensors = [item for item in call.positional if isinstance(item, TensorValue)]
    numbers = [item for item in call.positional if not isinstance(item, TensorValue)]
    found = promoted(tensors, numbers) if not any(isinstance(item, Opaque) for item in numbers) else None
    return DtypeValue(found) if found is not None else call.opaque("the dtypes of two values")


def _is_tensor(call: Call) -> object:
    (value,) = call.positional or (None,)
    return value if isinstance(value, Opaque) else isinstance(value, TensorValue)


def _is_floating_point(call: Call) -> object:
    (value,) = call.positional or (None,)
    if not isinstance(value, TensorValue) or value.dtype is None:
        return NOT_KNOWN
    return is_floating(value.dtype)


def _broadcast_shapes(call: Call) -> object:
    try:
        return shapes_broadcast(call)
    except RefusedError as error:
        call.throw(error.exception, str(error))


def _pad(call: Call) -> object:
    found = call.bound("input", "pad", "mode", "value")
    known = found is not None and {"input", "pad"} <= found.keys()
    if found is None or not known:
        return NOT_KNOWN
    return operated(call.machine, "constant_pad_nd", (found["input"], found["pad"]), {})


def _first(call: Call) -> object:
    return call.positional[0] if call.positional else NOT_KNOWN


_OWN: Mapping[str, ExternalFunction] = {
    **CHECKS,
    "finfo": finfo,
    "iinfo": iinfo,
    "tensor": _tensor,
    "as_tensor": _tensor,
    "Size": _size,
    "numel": _numel,
    "promote_types": _promote_types,
    "result_type": _result_type,
    "is_tensor": _is_tensor,
    "is_floating_point": _is_floating_point,
    "broadcast_shapes": _broadcast_shapes,
    "nn.functional.pad": _pad,
    "nn.Parameter": _first,
    "nn.parameter.Parameter": _first,
}


# Values, attributes, operators


def _value(name: str) -> object:
    if not name.startswith("torch."):
        return NOT_KNOWN
    found = torch_table().aliases.get(name.removeprefix("torch."))
    return DtypeValue(found) if found is not None else NOT_KNOWN


def _attribute(machine: Caller, value: object, name: str) -> object:
    if isinstance(value, DtypeValue):
        return dtype_attribute(value.name, name)
    if isinstance(value, DtypeLimits):
        return limit(machine, value, name)
    if isinstance(value, tuple) and value and all(isinstance(item, TensorValue) for item in value):
        return _part(machine, value, name)
    if isinstance(value, tuple) and name == "numel":  # of `torch.Size`
        return Native(name, lambda call: count_of(TensorValue(value)))
    return _of_tensor(machine, value, name) if isinstance(value, TensorValue) else NOT_KNOWN


def _part(machine: Caller, value: tuple[object, ...], name: str) -> object:
    if name in ("index", "count") or (name.startswith("__") and name.endswith("__")):
        return NOT_KNOWN
    known = name in _PARTS and len(value) == 2
    return value[_PARTS[name]] if known else machine.opaque(f"the attribute `{name}` of a tuple")


def _of_tensor(machine: Caller, tensor: TensorValue, name: str) -> object:
    if name in ATTRIBUTES:
        return ATTRIBUTES[name](tensor)
    if name in OF_DEVICES and tensor.device is not None:
        return tensor.device.fact(name)
    if name in _TRANSPOSED:
        turned = TensorValue(tensor.shape[::-1], tensor.dtype, tensor.device)
        return turned if len(tensor.shape) == 2 or name == "T" else _matrices(machine, tensor)
    if name in METHODS:
        return Native(name, lambda call: _guarded(call, lambda: METHODS[name](tensor, call)))
    if name in CASTS:
        return Native(name, lambda call: TensorValue(tensor.shape, CASTS[name], tensor.device))
    if name in COPIES:
        return Native(name, lambda call: converted(tensor, (*call.positional, *call.keywords.values())))
    if name in torch_table().operators:
        return Native(name, lambda call: operated(call.machine, name, (tensor, *call.positional), call.keywords))
    if name.endswith("_") and not name.endswith("__"):
        return Native(name, lambda call: call.machine.stop(f"`{name}` may change a shape"))
    return machine.opaque(f"`{name}` of a tensor")


def _matrices(machine: Caller, tensor: TensorValue) -> object:
    return operated(machine, "transpose", (tensor, -2, -1), {})


def _guarded(call: Call, function: Callable[[], object]) -> object:
    try:
        return function()
    except RefusedError as error:
        call.throw(error.exception, str(error))


def _operator(machine: Caller, word: str, operands: Sequence[object]) -> object:
    if not any(isinstance(item, TensorValue) for item in operands):
        return NOT_KNOWN
    if word == "[]":
        return _item(machine, operands[0], operands[1])
    if word in _OPERATORS:
        return _operated(machine, word, operands)
    if word.removesuffix("=") in _OPERATORS and isinstance(operands[0], TensorValue):
        name = f"{_OPERATORS[word[:-1]]}_"  # `x += y` keeps the dtype of `x`
        return operated(machine, name, operands, {}) if name in torch_table().operators else NOT_KNOWN
    (tensor, *_) = operands
    if word == "len" and isinstance(tensor, TensorValue) and tensor.shape:
        return _guarded(Call(machine), lambda: size_of(tensor, 0))
    if word == "iter" and isinstance(tensor, TensorValue):
        return operated(machine, "unbind", (tensor,), {})
    return machine.opaque("an element of a tensor") if word in ("bool", "int", "float", "str") else NOT_KNOWN


def _operated(machine: Caller, word: str, operands: Sequence[object]) -> object:
    left = operands[0]
    if isinstance(left, TensorValue):
        return operated(machine, _OPERATORS[word], operands, {})
    if number_dtype(left) is None:
        return NOT_KNOWN
    # the result of a number and a tensor has the shape and dtype of that of the tensor and the number
    return operated(machine, _OPERATORS[word], operands[::-1], {})


def _item(machine: Caller, tensor: object, index: object) -> object:
    if not isinstance(tensor, TensorValue):
        return NOT_KNOWN
    if not all(isinstance(size, int) for size in tensor.shape):
        return machine.opaque("a size is not known")
    try:
        return TensorValue(subscripted(tensor.shape, index), tensor.dtype, tensor.device)  # type: ignore[arg-type]
    except RefusedError as error:
        machine.throw(error.exception, str(error))
    except OpenSizeError as error:
        return machine.opaque(str(error))


def _instance(machine: Caller, value: object, name: str) -> object:
    if name in ("torch.Tensor", "torch._tensor.Tensor"):
        return isinstance(value, TensorValue)
    if name == "torch.dtype":
        return isinstance(value, DtypeValue)
    if name == "torch.Size":
        return Opaque("whether a tuple is a `torch.Size`") if isinstance(value, tuple) else False
    return (
        False
        if isinstance(value, TensorValue) and name in ("int", "float", "bool", "str", "tuple", "list")
        else NOT_KNOWN
    )


TORCH = ExecutionDialect(
    functions=_function, value=_value, attribute=_attribute, operator=_operator, instance=_instance
)
"""The dialect of torch."""

"""Attributes of tensors and dtypes, and methods that do not return a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call
from opschema_cli.evaluation.execution.values import DtypeValue, Opaque, TensorValue
from opschema_cli.evaluation.tensors.promotion import is_floating
from opschema_cli.evaluation.tensors.sizes import RefusedError, axis, broadcast
from opschema_cli.evaluation.values import ExternalName

SIZES: Mapping[str, int] = {
    **dict.fromkeys(("bool", "uint8", "int8", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"), 1),
    **dict.fromkeys(("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
"""Bytes of an element."""


def dtype_attribute(dtype: str, name: str) -> object:
    """Return an attribute of a dtype."""
    match name:
        case "itemsize":
            return SIZES.get(dtype, NOT_KNOWN)
        case "is_floating_point":
            return is_floating(dtype)
        case "is_complex":
            return dtype.startswith("complex")
    return NOT_KNOWN


def dtype_of(tensor: TensorValue) -> DtypeValue | Opaque:
    """Return the dtype of a tensor."""
    return DtypeValue(tensor.dtype) if tensor.dtype is not None else Opaque("the dtype of a tensor")


def count_of(tensor: TensorValue) -> object:
    """Return the number of elements."""
    sizes = [size for size in tensor.shape if isinstance(size, int)]
    return prod(sizes) if len(sizes) == len(tensor.shape) else Opaque("a size is not known")


def size_of(tensor: TensorValue, dim: object) -> object:
    """``tensor.size(dim)``.

    Raises:
        RefusedError: the tensor has no such dimension.
    """
    if dim is None:
        return tensor.shape
    return tensor.shape[axis(dim, len(tensor.shape))] if isinstance(dim, int) else Opaque("a dimension")


def _size(tensor: TensorValue, call: Call) -> object:
    found = call.bound("dim")
    return NOT_KNOWN if found is None else size_of(tensor, found.get("dim"))


def _bytes(tensor: TensorValue) -> object:
    return SIZES.get(tensor.dtype or "", Opaque("the dtype of a tensor"))


ATTRIBUTES: Mapping[str, Callable[[TensorValue], object]] = {
    "shape": lambda tensor: tensor.shape,
    "ndim": lambda tensor: len(tensor.shape),
    "dtype": dtype_of,
    "itemsize": _bytes,
    "is_sparse": lambda tensor: False,
    "is_nested": lambda tensor: False,
    "is_quantized": lambda tensor: False,
    "data": lambda tensor: tensor,
}
"""Attributes of tensors that are not tensors made by an operator."""

OF_DEVICES = frozenset(
    {
        "device",
        "is_cuda",
        "is_cpu",
        "is_xpu",
        "is_mps",
        "is_mtia",
        "is_maia",
        "is_meta",
        "is_ipu",
        "is_xla",
        "is_vulkan",
    }
    | {"is_npu", "is_musa", "is_mlu", "is_hpu"}
)
"""Attributes that are the same for all tensors on one device, including those of backends outside torch."""

METHODS: Mapping[str, Callable[[TensorValue, Call], object]] = {
    "size": _size,
    "dim": lambda tensor, call: len(tensor.shape),
    "ndimension": lambda tensor, call: len(tensor.shape),
    "numel": lambda tensor, call: count_of(tensor),
    "nelement": lambda tensor, call: count_of(tensor),
    "element_size": lambda tensor, call: _bytes(tensor),
    "is_floating_point": lambda tensor, call: is_floating(tensor.dtype) if tensor.dtype else Opaque("a dtype"),
    "is_complex": lambda tensor, call: tensor.dtype.startswith("complex") if tensor.dtype else Opaque("a dtype"),
}
"""Methods of tensors that do not return a tensor."""

CASTS: Mapping[str, str] = {
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
}
"""Methods that convert a tensor to a dtype."""

COPIES = frozenset({"cpu", "cuda", "to", "type", "contiguous", "requires_grad_", "pin_memory", "type_as"})
"""Methods whose result has the shape of the tensor, and possibly the dtype of an argument."""


_TENSOR_TYPES = {
    "BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32",
    "LongTensor": "int64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "FloatTensor": "float32",
    "DoubleTensor": "float64",
}  # fmt: skip


def converted(tensor: TensorValue, values: tuple[object, ...]) -> TensorValue:
    """Return the tensor with the dtype that one of the arguments is, has or (a tensor type, also as a string) stands for."""
    dtype = tensor.dtype
    for value in values:
        written = value.name if isinstance(value, ExternalName) else value
        if isinstance(written, str) and written.endswith("Tensor"):
            return TensorValue(tensor.shape, _TENSOR_TYPES.get(written.rpartition(".")[2]))
        if isinstance(value, DtypeValue):
            return TensorValue(tensor.shape, value.name)
        if isinstance(value, TensorValue):
            return TensorValue(tensor.shape, value.dtype)
        if isinstance(value, Opaque):
            dtype = None
    return TensorValue(tensor.shape, dtype)


def viewed_as(tensor: TensorValue, dtype: str) -> TensorValue | Opaque:
    """``tensor.view(dtype)``: the last size changes with the size of an element.

    Raises:
        RefusedError: the last dimension does not hold elements of that size.
    """
    old, new = SIZES.get(tensor.dtype or ""), SIZES.get(dtype)
    if old is None or new is None:
        return Opaque("the size of an element")
    if old == new:
        return TensorValue(tensor.shape, dtype)
    if not tensor.shape:
        raise RefusedError(f"self.dim() cannot be 0 to view {tensor.dtype} as {dtype}")
    last = tensor.shape[-1]
    if not isinstance(last, int):
        return TensorValue((*tensor.shape[:-1], Opaque("a size")), dtype)
    if last * old % new:
        raise RefusedError(f"self.size(-1) must be divisible by {new // old} to view {tensor.dtype} as {dtype}")
    return TensorValue((*tensor.shape[:-1], last * old // new), dtype)


def shapes_broadcast(call: Call) -> object:
    """``torch.broadcast_shapes``.

    Raises:
        RefusedError: they do not fit.
    """
    shapes = [(item,) if isinstance(item, int) else item for item in call.positional]
    if not all(isinstance(item, tuple | list) and all(isinstance(size, int) for size in item) for item in shapes):
        return call.opaque("a size is not known")
    return broadcast([tuple(item) for item in shapes])  # type: ignore[arg-type]

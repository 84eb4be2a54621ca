"""Meaning of names for the code of op classes, where it is executed without torch and without installed backends."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.values import DtypeValue, Object, Opaque, TensorValue
from opschema_cli.schema.dtypes import canonical, is_dtype
from opschema_cli.schema.shape_functions import broadcast_shapes
from opschema_rules.tileops.model import Manifest

# Torch


def _broadcast_shapes(call: Call) -> object:
    if not all(
        isinstance(shape, tuple | list) and all(type(size) is int for size in shape) for shape in call.positional
    ):
        return call.opaque("the shape that shapes broadcast to")
    try:
        return broadcast_shapes(*call.positional)  # type: ignore[arg-type]
    except ValueError as error:
        return call.throw("RuntimeError", str(error))


def _size(call: Call) -> object:
    return tuple(call.positional[0]) if call.positional and isinstance(call.positional[0], tuple | list) else NOT_KNOWN


_TORCH = {"torch.broadcast_shapes": _broadcast_shapes, "torch.Size": _size}


def _torch_value(name: str) -> object:
    module, _, last = name.rpartition(".")
    return DtypeValue(canonical(last)) if module == "torch" and is_dtype(last) else NOT_KNOWN


def _tensor_attribute(caller: Caller, value: object, name: str) -> object:
    if isinstance(value, TensorValue) and name in ("shape", "ndim"):
        return value.shape if name == "shape" else len(value.shape)
    if isinstance(value, TensorValue) and name == "dtype" and value.dtype is not None:
        return DtypeValue(value.dtype)
    if isinstance(value, DtypeValue) and name == "is_floating_point":
        return "float" in value.name
    return NOT_KNOWN


TORCH = ExecutionDialect(functions=_TORCH.get, value=_torch_value, attribute=_tensor_attribute)


# The tree's own package


def _own_functions(manifest: Manifest) -> Callable[[str], ExternalFunction | None]:
    """Functions of the package that only keep books, or read what is known: the manifest."""
    entries = {entry.name: entry.data for entry in manifest.entries}
    known: dict[str, ExternalFunction] = {"dispatch_kernel": _dispatch_kernel, "load_manifest": lambda call: entries}
    return lambda name: known.get(name.rpartition(".")[2])


def _dispatch_kernel(call: Call) -> object:
    """What every constructor calls to choose kernels: no shape depends on it, and it reads the modules of all kernels."""
    this = call.positional[0] if call.positional else None
    if not isinstance(this, Object):
        return NOT_KNOWN
    this.attributes["kernel_map"] = call.opaque("the kernels of an op")
    this.attributes["_overridden_keys"] = frozenset()
    this.attributes["_instance_key"] = this.cls.ref.name
    return None


@cached_on_argument
def executor_of(manifest: Manifest) -> Executor:
    """The executor of a manifest's package."""
    own = ExecutionDialect(functions=_own_functions(manifest), reads_own=True)
    return Executor(manifest.evaluator, (TORCH, own))


UNDECLARED = Opaque("an argument that the manifest does not declare")
"""Argument for a parameter of a constructor that the manifest says nothing of."""

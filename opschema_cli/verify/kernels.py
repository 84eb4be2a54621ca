"""References that torch has for a registered operator: another kernel of it, or a decomposition."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_map_only

from opschema_cli.verify.loading import RefusedError

_COMPOSITE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA")


def other_kernel(operator: Callable[..., object], device: str) -> Callable[..., object]:
    """A function that computes the same as an operator on a device, by other code, and takes the same arguments. ``operator`` is
    one of :func:`~opschema_cli.verify.registered.import_operator`.

    Raises:
        RefusedError: there is none.
    """
    overload: OpOverload = operator.overload  # type: ignore[attr-defined]
    found = _other(overload, device)
    if found is None:
        raise RefusedError(
            f"`{overload._schema.name}` has no other kernel and no decomposition; a recipe can give a reference"
        )
    found.__signature__ = inspect.signature(operator)  # type: ignore[attr-defined]
    return found


def _other(overload: OpOverload, device: str) -> Callable[..., object] | None:
    keys = registered_keys(overload)
    key = torch.device(device).type.upper()
    if key in keys:
        for composite in _COMPOSITE:
            if composite in keys:
                return _by_key(overload, composite)
    if key != "CPU" and "CPU" in keys:
        return lambda *args, **kwargs: _moved(overload(*_moved(args, "cpu"), **_moved(kwargs, "cpu")), device)
    decomposition = torch._decomp.decomposition_table.get(overload)
    return None if decomposition is None else lambda *args, **kwargs: decomposition(*args, **kwargs)


def registered_keys(overload: OpOverload) -> set[str]:
    """The dispatch keys and aliases that an operator has kernels for."""
    dump = torch._C._dispatch_dump(overload.name())  # type: ignore[no-untyped-call]
    return set(re.findall(r"^(\w+)(?:\[alias\])?: registered", dump, re.MULTILINE))


def has_gradient(overload: OpOverload) -> bool:
    """Whether a kernel for autograd is registered."""
    return not registered_keys(overload).isdisjoint(_AUTOGRAD)


def _by_key(overload: OpOverload, key: str) -> Callable[..., object]:
    dispatch_key = getattr(torch._C.DispatchKey, key)
    return lambda *args, **kwargs: overload._op_dk(dispatch_key, *args, **kwargs)


def _moved(arguments: Any, device: str) -> Any:
    return tree_map_only(Tensor, lambda tensor: tensor.to(device), arguments)

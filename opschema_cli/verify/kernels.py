"""Torch's own references for a registered operator: another kernel of it, or a decomposition."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_map_only

from opschema_cli.verify.loading import RefusedError

_COMPOSITE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA")


class OtherKernel(NamedTuple):
    """Another implementation of an operator, with its description."""

    description: str
    function: Callable[..., object]


def other_kernel(operator: Callable[..., object], device: str) -> Callable[..., object]:
    """Return a function that computes the same as an operator on a device, with other code and the same arguments. ``operator`` is
    one of :func:`~opschema_cli.verify.registered.import_operator`.

    Raises:
        RefusedError: there is none.
    """
    overload: OpOverload = operator.overload  # type: ignore[attr-defined]
    on_backend: bool = operator.on_backend  # type: ignore[attr-defined]
    if torch.Tag.nondeterministic_seeded in overload.tags:
        raise RefusedError(f"`{overload._schema.name}` draws random numbers, and another kernel draws others")
    found = other_kernel_of(overload, device, on_backend=on_backend)
    if found is None:
        raise RefusedError(
            f"`{overload._schema.name}` has no other kernel and no decomposition; a recipe can give a reference"
        )
    found.function.__signature__ = inspect.signature(operator)  # type: ignore[attr-defined]
    return found.function


def other_kernel_of(overload: OpOverload, device: str, *, on_backend: bool = False) -> OtherKernel | None:
    """Return another implementation of an operator on a device or a backend, or None if there is none."""
    if on_backend:
        return OtherKernel("its kernel for the CPU", lambda *args, **kwargs: overload(*args, **kwargs))
    keys = registered_keys(overload)
    key = torch.device(device).type.upper()
    if key in keys:
        for composite in _COMPOSITE:
            if composite in keys:
                return OtherKernel(f"its kernel for {composite}", _by_key(overload, composite))
    if key != "CPU" and "CPU" in keys:
        return OtherKernel("its kernel for the CPU", partial(_elsewhere, overload, device))
    decomposition = torch._decomp.decomposition_table.get(overload)
    if decomposition is None:
        return None
    return OtherKernel("its decomposition by torch", lambda *args, **kwargs: decomposition(*args, **kwargs))


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


def _elsewhere(overload: OpOverload, device: str, /, *args: object, **kwargs: object) -> object:
    return _moved(overload(*_moved(args, "cpu"), **_moved(kwargs, "cpu")), device)


def _moved(arguments: Any, device: str) -> Any:
    return tree_map_only(Tensor, lambda tensor: tensor.to(device), arguments)

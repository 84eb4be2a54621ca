"""Kernels of a backend for ``PrivateUse1``, called with copies of tensors of the CPU; the CPU's kernel is their reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from opschema_cli.verify.loading import AbsentError, RefusedError
from opschema_cli.verify.plan_names import BACKEND

_ALLOCATING = "aten::empty.memory_format"


def on_backend(overload: OpOverload) -> Callable[..., object]:
    """A function that calls an operator on the backend's device: tensors are copied there, and results and arguments that the
    operator writes are copied back. Strides are kept, and a result that is an argument is the caller's tensor.

    Raises:
        AbsentError: the backend has no kernel of its own for it, or no memory.
        RefusedError: by the function, if a call resizes an argument.
    """
    name: str = overload.name()  # type: ignore[no-untyped-call]
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, BACKEND):
        raise AbsentError(f"the imported code registers no kernel of `{name}` for {BACKEND}")
    if not torch._C._dispatch_has_kernel_for_dispatch_key(_ALLOCATING, BACKEND):
        raise AbsentError(
            f"the imported code registers no kernel of `{_ALLOCATING}` for {BACKEND}: no tensor can be made there"
        )
    device = torch._C._get_privateuse1_backend_name()

    def call(*args: object, **kwargs: object) -> object:
        if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves((args, kwargs))):
            return overload(*args, **kwargs)  # shapes and dtypes are those of any device
        there: dict[int, Tensor] = {}  # by the tensor of the CPU, so that one passed twice is one there too

        def moved(tensor: Tensor) -> Tensor:
            return there.setdefault(id(tensor), _sent(tensor, device))

        moved_args, moved_kwargs = tree_map_only(Tensor, moved, (args, kwargs))
        with _plain_memory():
            found = overload(*moved_args, **moved_kwargs)
        here: dict[int, Tensor] = {}
        for tensor in _written(overload, args, kwargs):
            other = there[id(tensor)]
            if other.shape != tensor.shape:
                raise RefusedError(f"it resized an argument from {tuple(tensor.shape)} to {tuple(other.shape)}")
            tensor.copy_(other)
            here[id(other)] = tensor
        return tree_map_only(Tensor, lambda tensor: here.get(id(tensor), _copied(tensor, "cpu")), found)

    return call


@contextmanager
def _plain_memory() -> Iterator[None]:
    """Leave new memory uninitialized: torch fills the memory that `resize_` adds as if it were CPU memory, whatever the device."""
    settings: Any = torch.utils.deterministic
    usual = settings.fill_uninitialized_memory
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        settings.fill_uninitialized_memory = usual


def _written(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Tensor]:
    """The tensors of the arguments that an operator writes."""
    for place, argument in enumerate(overload._schema.arguments):
        value = kwargs.get(argument.name, args[place] if place < len(args) else None)
        if argument.is_write:
            yield from (
                item for item in (value if isinstance(value, list | tuple) else [value]) if isinstance(item, Tensor)
            )


def _sent(tensor: Tensor, device: str) -> Tensor:
    """A copy with the memory around the elements: `as_strided` reads it."""
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.is_contiguous() and elements == tensor.numel():
        return tensor.to(device)
    memory = tensor.detach().as_strided((elements,), (1,), 0)
    return memory.to(device).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _copied(tensor: Tensor, device: str) -> Tensor:
    """A copy with the same strides; contiguous if elements of the tensor share memory."""
    if torch._debug_has_internal_overlap(tensor.detach()) == 1:
        return tensor.to(device)
    copy = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
    return copy.copy_(tensor)

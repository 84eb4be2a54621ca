"""Operators of torch.library: the arguments that a call passes to them, their fake kernels compared with the real ones, and
``torch.library.opcheck``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import torch
from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from opschema_cli.verify.compare import is_nan
from opschema_cli.verify.compilation import compilation_faults
from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.gradients import gradient_faults
from opschema_cli.verify.loading import described, passes

Key = tuple[str, str]
Depth = Literal["fake", "opcheck", "all"]
"""The depth of a call's checks: only its fake kernel; also torch's own tests and gradients; also compilation."""

_NO_FAKE = "no fake impl registered"
# The last one takes NaN for other results than NaN.
_TESTS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
_MOST_ELEMENTS = 1 << 22
_TOOLING = (ImportError, NotImplementedError, DataDependentOutputException, DynamicOutputShapeException)


class OperatorCall(msgspec.Struct, frozen=True):
    """One call of an operator: its arguments as they were, how its results lie, and whether one of their elements is NaN."""

    operator: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[tuple[tuple[int, ...], torch.dtype, tuple[int, ...], str], ...]
    has_nan: bool = False

    @property
    def name(self) -> str:
        """The operator's name, with its namespace."""
        return str(self.operator._schema.name)

    @property
    def key(self) -> Key:
        """A key that is equal for calls whose arguments have the same shapes, dtypes and strides."""
        tensors = [_lies(leaf) for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Tensor)]
        return str(self.operator), repr(tensors)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True

    def __init__(self, names: Collection[str], calls: list[OperatorCall]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._names = names
        self._calls = calls

    def __torch_dispatch__(
        self,
        func: OpOverload | HigherOrderOperator,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        name = str(func._schema.name)
        if name not in self._names and f"{name}.{func._overloadname}" not in self._names:
            return func(*args, **kwargs)
        kept = tree_map_only(Tensor, Tensor.clone, (args, kwargs))
        result = func(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        has_nan = any(is_nan(tensor).any() for tensor in tensors if tensor.is_floating_point())
        self._calls.append(OperatorCall(func, kept[0], kept[1], tuple(map(_lies, tensors)), has_nan))
        return result


@contextmanager
def recorded(names: Collection[str]) -> Iterator[list[OperatorCall]]:
    """The calls of operators with these names (``namespace::name``) that happen inside."""
    calls: list[OperatorCall] = []
    with _Recorder(names, calls):
        yield calls


def faults(call: OperatorCall, root: str, depth: Depth, *, exact_gradient: bool = True) -> Iterator[tuple[str, str]]:
    """Faults of an operator that this call shows, each with its check: ``fake-...``, ``opcheck-...``, ``compile``, ``gradient``."""
    fake = list(_fake(call, root))
    yield from fake
    if depth == "fake" or not _checkable(call):
        return
    is_missing = any(check == "fake-missing" for check, _ in fake)
    yield from _opcheck(call, root, _TESTS[:1] if is_missing else _TESTS[:2] if call.has_nan else _TESTS)
    if depth == "all" and not fake:
        yield from compilation_faults(call.operator, call.args, call.kwargs, root)
    if exact_gradient:
        yield from gradient_faults(call.operator, call.args, call.kwargs)


def _fake(call: OperatorCall, root: str) -> Iterator[tuple[str, str]]:
    mode = FakeTensorMode()
    try:
        args, kwargs = tree_map_only(Tensor, mode.from_tensor, (call.args, call.kwargs))
        with mode:
            result = call.operator(*args, **kwargs)
    except UnsupportedOperatorException:
        yield "fake-missing", f"`{call.name}` has no fake kernel"
        return
    except _TOOLING:
        return
    except Exception as error:
        if _NO_FAKE in str(error):
            yield "fake-missing", f"`{call.name}` has no fake kernel"
        elif passes(error, root):
            yield "fake-raises", f"the fake kernel of `{call.name}` raises {described(error, root)}"
        return
    fakes = [_lies(leaf) for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    if len(fakes) != len(call.results):
        yield "fake-outputs", f"`{call.name}` returns {len(call.results)} tensors, its fake kernel {len(fakes)}"
        return
    for place, (real, fake) in enumerate(zip(call.results, fakes, strict=True)):
        yield from _differences(f"`{call.name}` output {place}", real, fake)


def _differences(
    what: str, real: tuple[tuple[int, ...], torch.dtype, tuple[int, ...], str], fake: tuple[object, ...]
) -> Iterator[tuple[str, str]]:
    for place, aspect in enumerate(("shape", "dtype", "strides", "device")):
        if real[place] != fake[place]:
            yield f"fake-{aspect}", f"{what}: {aspect} {real[place]}; the fake kernel says {fake[place]}"
            return


def _lies(tensor: Tensor) -> tuple[tuple[int, ...], torch.dtype, tuple[int, ...], str]:
    """Shape, dtype, the strides that matter (those of dimensions with more than one element), device."""
    shape = tuple(tensor.shape)
    steps = () if 0 in shape else tuple(s if n > 1 else 0 for n, s in zip(shape, tensor.stride(), strict=True))
    return shape, tensor.dtype, steps, tensor.device.type


def _checkable(call: OperatorCall) -> bool:
    """Whether torch's own tests can compare its tensors: they have no tolerance for 8-bit floats, and call it many times."""
    tensors = [leaf for leaf in tree_leaves((call.args, call.kwargs)) if isinstance(leaf, Tensor)]
    return all(
        tensor.numel() <= _MOST_ELEMENTS and not (tensor.is_floating_point() and tensor.element_size() == 1)
        for tensor in tensors
    )


def _opcheck(call: OperatorCall, root: str, tests: Sequence[str]) -> Iterator[tuple[str, str]]:
    try:
        results = torch.library.opcheck(call.operator, call.args, call.kwargs, test_utils=tests, raise_exception=False)
    except Exception as error:
        if out_of_memory(error):
            raise
        return
    for test, result in results.items():
        if not isinstance(result, Exception) or isinstance(result, _TOOLING):
            continue
        if out_of_memory(result):
            raise result
        yield f"opcheck-{test.removeprefix('test_').replace('_', '-')}", described(result, root).partition("\n")[0]

"""Modules with ops that run: by a stand-in for the decorator, or by MagiCompiler's own one from a checkout."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.rules.magi.real_magi import _import_decorator, _install

_NUMBERS = itertools.count()


@contextmanager
def decorator(checkout: Path | None) -> Iterator[None]:
    """``magi_compiler.api.magi_register_custom_op`` is that of a checkout; the stand-in without one."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "magi_compiler"}
    try:
        if checkout is None:
            _install("magi_compiler", __path__=[])
            _install("magi_compiler.api", magi_register_custom_op=stand_in)
        else:
            real = _import_decorator(checkout)
            _install("magi_compiler.api", magi_register_custom_op=real._magi_register_custom_op_impl)
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "magi_compiler"]:
            del sys.modules[name]
        sys.modules.update(before)


def load(text: str, folder: Path, checkout: Path | None) -> ModuleType:
    """The module of a text, its ops in a namespace of their own instead of ``kit``."""
    number = next(_NUMBERS)
    name = f"opschema_running_{number}"
    path = folder / f"{name}.py"
    path.write_text(text.replace("kit::", f"kit{number}::").replace("torch.ops.kit.", f"torch.ops.kit{number}."))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with decorator(checkout):
        spec.loader.exec_module(module)
    return module


def stand_in(name: str = "", **given: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What the decorator means, with neither torch's registration nor its checks: values reach the function as they are.

    Setup gets one input for each parameter, backward returns one gradient for each; a meta function is called by name.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def bound(args: Any, kwargs: Any) -> inspect.BoundArguments:
            found = signature.bind(*args, **kwargs)
            found.apply_defaults()
            return found

        def op(*args: Any, **kwargs: Any) -> Any:
            values = list(bound(args, kwargs).arguments.values())
            keywords = [item.name for item in signature.parameters.values() if item.kind is item.KEYWORD_ONLY]
            count = len(values) - len(keywords)

            class Function(torch.autograd.Function):
                @staticmethod
                def forward(ctx: Any, *inputs: Any) -> Any:
                    with torch.no_grad():
                        output = function(*inputs[:count], **dict(zip(keywords, inputs[count:], strict=True)))
                    if given.get("setup_context_fn"):
                        given["setup_context_fn"](ctx, inputs, output)
                    return output

                @staticmethod
                def backward(ctx: Any, *grads: Any) -> Any:
                    return given["backward_fn"](ctx, *grads)

            return Function.apply(*values)  # type: ignore[no-untyped-call]

        def fake(*args: Any, **kwargs: Any) -> Any:
            arguments = dict(bound(args, kwargs).arguments)
            meta = given.get("infer_output_meta_fn")
            if callable(meta):
                return meta(**arguments)
            leaves = dict(_leaves(arguments))
            names = meta or [key for key, value in leaves.items() if isinstance(value, torch.Tensor)][:1]
            found = tuple(torch.empty_like(leaves[key]) for key in names)
            return found[0] if len(found) == 1 else found

        op.fake = fake  # type: ignore[attr-defined]
        return op

    return decorate


def _leaves(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in arguments.items():
        if dataclasses.is_dataclass(value):
            inner = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            yield from ((f"{name}__{key}", item) for key, item in _leaves(inner))
        else:
            yield name, value


def same(left: Any, right: Any) -> bool:
    """Whether two results are equal, bit by bit."""
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)

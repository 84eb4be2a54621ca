"""Comparison of an op's own methods with its results: ``_infer_output_shapes``, ``_validate_dtypes``, ``eval_roofline``.

A class that lacks one, or whose one cannot be called by the declared names, is no matter of this: lint sees that.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from inspect import Signature

from torch import Tensor

from opschema_cli.verify.binding import UnboundError, bind, is_open
from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.loading import described
from opschema_cli.verify.model import Call, Finding

_NOT_ITS_ARGUMENTS = re.compile(
    r"required (positional |keyword-only )?argument|unexpected keyword|positional arguments?"
)


def findings(
    op: object, call: Call, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], side: str, root: str
) -> list[Finding]:
    """Contradictions between an op's methods and the call that it just ran."""
    checks = (
        ("infer-output-shapes", _shapes(op, call, inputs, outputs)),
        ("validate-dtypes", _dtypes(op, call, inputs)),
        ("eval-roofline", _roofline(op, (*inputs.values(), *outputs.values()))),
    )
    return [
        Finding(check=check, side=side, message=message)
        for check, messages in checks
        for message in _survived(messages, root)
    ]


def _survived(messages: Iterator[str], root: str) -> Iterator[str]:
    """The messages, and the exception that a method raised for a call that ran."""
    try:
        yield from messages
    except (NotImplementedError, UnboundError):
        return
    except Exception as error:
        if out_of_memory(error):
            raise
        yield f"for a call that ran it raises {described(error, root)}"


def _shapes(op: object, call: Call, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Iterator[str]:
    method, signature = _method(op, "_infer_output_shapes")
    if method is None:
        return
    shapes: dict[str, object] = {f"{name}_shape": tuple(tensor.shape) for name, tensor in inputs.items()}
    shapes |= {f"{name}_shape": None for name in call.omitted}
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in signature.parameters.values()):
        return
    arguments = bind(signature, shapes, where="it", keep=True)
    inferred = _called(method, signature, arguments.args, arguments.kwargs)
    if not isinstance(inferred, Mapping):
        return
    for name, tensor in outputs.items():
        shape = inferred.get(name)
        if isinstance(shape, tuple | list) and tuple(shape) != tuple(tensor.shape):
            yield f"`{name}` is {tuple(tensor.shape)}; it infers {tuple(shape)}"


def _dtypes(op: object, call: Call, inputs: Mapping[str, Tensor]) -> Iterator[str]:
    method, signature = _method(op, "_validate_dtypes")
    if method is None:
        return
    named: dict[str, object] = {**inputs, **{name: None for name in call.omitted if name in signature.parameters}}
    open_ = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    if not open_ and is_open(signature):
        return
    arguments = bind(signature, named, where="it", keep=True)
    _called(method, signature, arguments.args, arguments.kwargs)
    yield from ()


def _roofline(op: object, tensors: tuple[Tensor, ...]) -> Iterator[str]:
    method, signature = _method(op, "eval_roofline")
    if method is None or any(tensor.numel() == 0 for tensor in tensors):
        return
    bind(signature, {}, where="it")
    found = method()
    if not isinstance(found, tuple | list) or len(found) != 2 or not all(isinstance(n, int | float) for n in found):
        yield f"it returns {found!r}, not (flops, bytes)"
        return
    flops, moved = found
    if not (math.isfinite(flops) and math.isfinite(moved) and flops >= 0 and moved > 0):
        yield f"it returns {flops!r} flops and {moved!r} bytes for a call that computed something"


def _method(op: object, name: str) -> tuple[Callable[..., object] | None, Signature]:
    method = getattr(op, name, None)
    if not callable(method):
        return None, Signature()
    try:
        return method, inspect.signature(method)
    except (TypeError, ValueError):
        return None, Signature()


def _called(
    method: Callable[..., object], signature: Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """Call a method. One with ``*args`` or ``**kwargs`` may still expect other names.

    Raises:
        UnboundError: it does.
        Exception: whatever it raises.
    """
    try:
        return method(*args, **kwargs)
    except TypeError as error:
        if is_open(signature) and _NOT_ITS_ARGUMENTS.search(str(error)):
            raise UnboundError(str(error)) from error
        raise

"""Calls of an op of Magi as a user makes them, held against calls of the function under its decorator."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from opschema_cli.proof import Seen
from tests.proofs.torch_calls import Outcomes, failure
from tests.proofs.torch_values import BY_TYPE, digest, looks

_BY_PYTHON = {torch.Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", torch.dtype: "ScalarType"}
"""The types of parameters by those of schemas."""

Make = Callable[[torch.Tensor], torch.Tensor]
"""The use of each tensor that is passed."""


def outcomes(name: str, op: Any, function: Callable[..., Any]) -> Outcomes:
    """All probes of an op; none where its annotations mean nothing."""
    try:
        hints = typing.get_type_hints(function)
        tried = list(_arguments(function, hints))
    except Exception:
        return
    for words, make in tried:
        title = f"{name}(){words}"
        yield title, _call(op, function, make)
        yield from _fake(f"{title} under FakeTensorMode", op, make)
        yield from _backward(f"{title} backward", op, function, make)


def _arguments(
    function: Callable[..., Any], hints: Mapping[str, Any]
) -> Iterator[tuple[str, Callable[[Make], dict[str, Any]]]]:
    """Words for the arguments of each call, and how they are made: the required ones, and each set to another value."""
    parameters = inspect.signature(function).parameters
    values = {name: _values(hints[name]) for name in parameters}
    base = {name: items[0] for name, items in values.items() if parameters[name].default is inspect.Parameter.empty}
    yield "", _maker(base)
    for name, items in values.items():
        for number, value in enumerate(items[name in base :], 1):
            yield f", {name} changed to value {number}", _maker({**base, name: value})


def _maker(arguments: Mapping[str, Callable[[Make], Any]]) -> Callable[[Make], dict[str, Any]]:
    return lambda make: {name: value(make) for name, value in arguments.items()}


def _values(annotation: Any) -> list[Callable[[Make], Any]]:
    """How values for an annotation are made, from what is done with each tensor."""
    if dataclasses.is_dataclass(annotation):
        return _instances(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [_constant(member) for member in annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return [_constant(value) for value in parts]
    if origin in (typing.Union, types.UnionType):
        return [value for part in parts for value in ([_constant(None)] if part is type(None) else _values(part))]
    if origin is list:
        return [lambda make, item=item: [item(make)] for item in _values(parts[0])]
    return [_made(value) for value in BY_TYPE[_BY_PYTHON[annotation]]]


def _constant(value: object) -> Callable[[Make], Any]:
    return lambda make: value


def _made(value: Any) -> Callable[[Make], Any]:
    return lambda make: make(value.clone()) if isinstance(value, torch.Tensor) else value


def _instances(cls: Any) -> list[Callable[[Make], Any]]:
    """An instance of a dataclass, and others with one field changed."""
    hints = typing.get_type_hints(cls)
    fields = {item.name: _values(hints[item.name]) for item in dataclasses.fields(cls) if item.init}
    base = {name: values[0] for name, values in fields.items()}
    changed = [{**base, name: value} for name, values in fields.items() for value in values[1:]]
    return [lambda make, chosen=chosen: cls(**_maker(chosen)(make)) for chosen in (base, *changed)]


def _call(op: Any, function: Callable[..., Any], arguments: Callable[[Make], dict[str, Any]]) -> Seen:
    try:
        found = digest(op(*arguments(_same).values()))
    except Exception as error:
        return failure(error)
    try:
        wanted = digest(function(*arguments(_same).values()))
    except Exception as error:
        return Seen("wrong", f"the function itself raises: {failure(error).message}", found)
    return (
        Seen("right", result=found)
        if found == wanted
        else Seen("wrong", "the function itself gives another result", found)
    )


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _fake(title: str, op: Any, arguments: Callable[[Make], dict[str, Any]]) -> Outcomes:
    try:
        real = looks(op(*arguments(_same).values()))
    except Exception:
        return
    mode = FakeTensorMode()
    faked = list(arguments(mode.from_tensor).values())
    try:
        with mode:
            found = looks(op(*faked))
    except Exception as error:
        yield title, failure(error)
        return
    yield title, Seen("right", result=real) if found == real else Seen("wrong", f"fake {found}, real {real}")


def _backward(
    title: str, op: Any, function: Callable[..., Any], arguments: Callable[[Make], dict[str, Any]]
) -> Outcomes:
    """The gradients of floating tensors; nothing where autograd finds none in the function, nor where the op has no gradient."""
    try:
        wanted = _gradients(function, arguments)
    except Exception:
        return
    try:
        found = _gradients(op, arguments)
    except Exception as error:
        if "no autograd formula" not in str(error):
            yield title, failure(error)
        return
    yield title, Seen("right", result=found) if found == wanted else Seen("wrong", "autograd finds other gradients")


def _gradients(function: Callable[..., Any], arguments: Callable[[Make], dict[str, Any]]) -> str:
    leaves: list[torch.Tensor] = []

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        leaves.append(tensor.requires_grad_())
        return leaves[-1]

    output = function(*arguments(leaf).values())
    outputs = output if isinstance(output, tuple | list) else [output]
    torch.stack([item.sum() for item in outputs]).sum().backward()  # type: ignore[no-untyped-call]
    return digest([item.grad for item in leaves])

"""A collector of the calls that interpreted tests make of operators."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.dialect import Call as Executed
from opschema_cli.evaluation.execution.values import Closure, DtypeValue, TensorValue
from opschema_cli.evaluation.tensors.dialect import TORCH
from opschema_cli.evaluation.values import ExternalName
from opschema_cli.operators.model import Operator
from opschema_cli.source.bodies import Body
from opschema_cli.verify.model import Call, Input

MOST_SAMPLES = 6
"""Samples of one operator."""

_MOST_ELEMENTS = 1 << 22
_OPERATOR = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?$")
_CREATING = frozenset(
    f"torch.{name}"
    for name in ("arange", "empty", "eye", "full", "ones", "rand", "randint", "randn", "randperm", "tensor", "zeros")
)
_NOT_ITS_SHAPE = ("device", "requires_grad", "pin_memory", "generator")


class Samples:
    """Collects the calls of operators while tests are interpreted."""

    def __init__(
        self, operators: Iterable[Operator], names: Mapping[str, str], full_name: Callable[[Body], str]
    ) -> None:
        self.found: dict[str, dict[str, Call]] = {}
        self._arguments = {
            item.name: [argument.name for argument in item.declaration.arguments]
            for item in operators
            if item.declaration.arguments is not None
        }
        self._names = names
        self._full_name = full_name
        self._seen: set[tuple[str, bytes]] = set()
        self._ranges: dict[int, tuple[TensorValue, float, float]] = {}
        self.test = ""
        self.dialect = ExecutionDialect(functions=self._function, reads_own=True)

    @property
    def complete(self) -> bool:
        """Whether every operator has as many samples as are taken."""
        return all(len(self.found.get(name, ())) >= MOST_SAMPLES for name in self._arguments)

    def _function(self, name: str) -> ExternalFunction | None:
        if name.rpartition(".")[2] == "opcheck":
            return self._opcheck
        operator = self._operator(name)
        if operator:
            return lambda call: self._called(operator, call)
        if name in _CREATING:
            return lambda call: self._created(name, call)
        return {
            "torch.testing.make_tensor": _make_tensor,
            "pytest.param": lambda call: call.positional[0] if len(call.positional) == 1 else call.positional,
        }.get(name)

    def _operator(self, name: str) -> str:
        """The operator of a full name: one of ``torch.ops``, or a kernel's function."""
        if match := _OPERATOR.match(name):
            base = f"{match[1]}::{match[2]}"
            overload = f"{base}.{match[3]}"
            return overload if match[3] and overload in self._arguments else base if base in self._arguments else ""
        return self._names.get(name, "")

    def _called(self, operator: str, call: Executed) -> object:
        self._add(operator, call.positional, call.keywords)
        return call.opaque(f"the result of the operator `{operator}`")

    def _opcheck(self, call: Executed) -> object:
        """``opcheck(op, args, kwargs)``."""
        function, *rest = call.positional or (None,)
        args = rest[0] if rest else call.keywords.get("args")
        kwargs = rest[1] if len(rest) > 1 else call.keywords.get("kwargs")
        name = function.name if isinstance(function, ExternalName) else ""
        if isinstance(function, Closure):
            name = self._full_name(function.body)
        operator = self._operator(name)
        if operator and isinstance(args, tuple | list):
            self._add(operator, args, kwargs if isinstance(kwargs, dict) else {})
        return call.opaque("the result of opcheck")

    def _created(self, name: str, call: Executed) -> object:
        """A new tensor, wherever it is; that of ``torch.randint`` remembers its range."""
        torch = TORCH.functions(name)
        words = {word: value for word, value in call.keywords.items() if word not in _NOT_ITS_SHAPE}
        found = torch(Executed(call.machine, call.positional, words)) if torch is not None else NOT_KNOWN
        bounds = [item for item in call.positional[:2] if type(item) is int] if name == "torch.randint" else []
        if isinstance(found, TensorValue) and bounds:
            low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
            self._ranges[id(found)] = (found, low, high)
        return found

    def _add(self, operator: str, positional: Sequence[object], keywords: Mapping[str, object]) -> None:
        names = self._arguments[operator]
        known = self.found.setdefault(operator, {})
        if len(positional) > len(names) or len(known) >= MOST_SAMPLES:
            return
        call = self._sample({**dict(zip(names, positional, strict=False)), **keywords})
        if call is None or not set(keywords) <= set(names):
            return
        key = operator, msgspec.msgpack.encode(call)
        if key not in self._seen:
            self._seen.add(key)
            known[f"{self.test}-{len(known) + 1}"] = call

    def _sample(self, arguments: Mapping[str, object]) -> Call | None:
        """The call with these arguments; None if one is not known."""
        inputs: list[Input] = []
        lists: dict[str, tuple[str, ...]] = {}
        params: dict[str, object] = {}
        for name, value in arguments.items():
            if isinstance(value, TensorValue):
                inputs.append(self._input(name, value))
            elif isinstance(value, list | tuple) and value and all(isinstance(item, TensorValue) for item in value):
                lists[name] = tuple(f"{name}.{place}" for place in range(len(value)))
                inputs += map(self._input, lists[name], value)
            elif _is_plain(value):
                params[name] = _plain(value)
            else:
                return None
        known = all(item.dtype and min(item.shape, default=0) >= 0 for item in inputs)
        small = all(math.prod(item.shape) <= _MOST_ELEMENTS for item in inputs)
        return Call(inputs=tuple(inputs), params=params, lists=lists) if known and small else None

    def _input(self, name: str, tensor: object) -> Input:
        assert isinstance(tensor, TensorValue)
        _, low, high = self._ranges.get(id(tensor), (None, None, None))
        shape = tuple(size if isinstance(size, int) else -1 for size in tensor.shape)
        return Input(name=name, shape=shape, dtype=tensor.dtype or "", low=low, high=high)


# Values


def _make_tensor(call: Executed) -> object:
    """``torch.testing.make_tensor(*shape, dtype=..., device=...)``."""
    sizes = call.positional[0] if call.positional and isinstance(call.positional[0], list | tuple) else call.positional
    dtype = call.keywords.get("dtype")
    if not isinstance(dtype, DtypeValue) or any(type(size) is not int for size in sizes):
        return call.opaque("a tensor")
    return TensorValue(tuple(sizes), dtype.name)


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | DtypeValue)


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return f"torch.{value.name}" if isinstance(value, DtypeValue) else value

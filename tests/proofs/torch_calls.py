"""Calls of one operator that is registered with torch, and what each shows; see :mod:`tests.proofs.torch_oracle` for the probes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.utils._pytree import tree_map

from opschema_cli.proof import Seen
from tests.proofs.torch_values import copied, digest, looks, values

KEYS = ("CPU", "CUDA", "XPU", "PrivateUse1", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The dispatch keys whose kernels are called, with tensors of the CPU: they are Python functions."""

Functions: TypeAlias = Mapping[tuple[str, str], Callable[..., Any]]
"""The functions that are registered, by operator (without ``.default``) and dispatch key."""

Outcomes: TypeAlias = Iterator[tuple[str, Seen]]


def failure(error: BaseException) -> Seen:
    """A refusal, with the first line that the error says."""
    return Seen("refused", f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"[:300])


class OperatorCalls:
    """The calls of one registered operator, and their outcomes."""

    def __init__(self, name: str, functions: Functions) -> None:
        qualname, _, overload = name.partition(".")
        namespace, _, short = qualname.partition("::")
        self.name = name
        self.key = name.removesuffix(".default")
        self.op = getattr(getattr(getattr(torch.ops, namespace), short), overload or "default")
        self.schema = self.op._schema
        self.functions = functions

    def outcomes(self) -> Outcomes:
        """All probes of the operator."""
        yield self.name, Seen("right")
        for key in KEYS:
            if torch._C._dispatch_has_kernel_for_dispatch_key(self.name, key):
                yield from self._of_key(key)
        yield from self._schema_check()
        for title, changed in self._changes():
            yield from self._fake(f"{self.name}{title} under FakeTensorMode", changed)
            if (self.key, "FuncTorchBatched") in self.functions:
                yield from self._vmap(f"{self.name}{title} under vmap", changed)

    def _changes(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The arguments that calls are given beside the required ones, with words for them."""
        yield "", {}
        for argument in self.schema.arguments:
            for number, value in enumerate(values(argument)[1:], 1):
                shown = repr(value) if isinstance(value, str) else f"value {number}"
                yield f", {argument.name} changed to {shown}", {argument.name: value}

    def _of_key(self, key: str) -> Outcomes:
        title = f"{self.name} on {key}"
        base = self._call(key, {})
        yield title, base
        seen: dict[str, dict[str, Seen]] = {}
        for words, changed in self._changes():
            for name in changed:
                seen.setdefault(name, {})[f"{title}{words}"] = self._call(key, changed)
        for name, found in seen.items():
            results = {item.result for item in found.values() if item.level == "right"}
            unused = base.level == "right" and results == {base.result}
            wrong = Seen("wrong", f"nothing depends on `{name}`")
            yield from ((probe, wrong if unused and item.level == "right" else item) for probe, item in found.items())

    def _call(self, key: str, changed: Mapping[str, Any]) -> Seen:
        """The dispatcher's call of a kernel, held against a call of its function with every argument by name."""
        args, kwargs = self._arguments(changed)
        try:
            output = self._dispatch(key, *args, **kwargs)
        except Exception as error:
            return failure(error)
        result = digest([output, self._written(args, kwargs)])
        explicit = self._explicit(key, changed)
        if explicit not in ("", digest(output)):
            return Seen(
                "wrong", "the function gives another result when it is given every argument by its name", result
            )
        return Seen("right", result=result)

    def _written(self, args: list[Any], kwargs: dict[str, Any]) -> list[object]:
        """The values of the arguments that the schema marks as written."""
        positional = [item for item in self.schema.arguments if not item.kwarg_only]
        passed = [
            *zip(positional, args, strict=False),
            *((item, kwargs.get(item.name)) for item in self.schema.arguments),
        ]
        return [value for item, value in passed if item.alias_info is not None and item.alias_info.is_write]

    def _dispatch(self, key: str, *args: Any, **kwargs: Any) -> object:
        if key.startswith("Composite"):
            return self.op(*args, **kwargs)
        return self.op._op_dk(getattr(torch._C.DispatchKey, key), *args, **kwargs)

    def _explicit(self, key: str, changed: Mapping[str, Any]) -> str:
        """The result of the function itself; empty where that is not known."""
        function = self.functions.get((self.key, key))
        if function is None:
            return ""
        parameters = inspect.signature(function).parameters
        by_name = {
            name for name, item in parameters.items() if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        }
        args, kwargs = self._arguments(changed, every=True)
        names = [item.name for item in self.schema.arguments if not item.kwarg_only]
        if by_name.issuperset(names):
            args, kwargs = [], {**dict(zip(names, args, strict=True)), **kwargs}
        try:
            return digest(function(*args, **kwargs))
        except Exception:
            return ""

    def _schema_check(self) -> Outcomes:
        """The schema test of ``torch.library.opcheck``: whether the schema says what is written, and what shares storage."""
        args, kwargs = self._arguments({})
        if not self._works(args, kwargs):
            return
        title = f"{self.name} in the schema test of opcheck"
        args, kwargs = self._arguments({})
        try:
            with SchemaCheckMode():
                self.op(*args, **kwargs)
        except Exception as error:
            yield title, Seen("wrong", failure(error).message)
        else:
            yield title, Seen("right")

    def _works(self, args: list[Any], kwargs: dict[str, Any]) -> bool:
        try:
            self.op(*args, **kwargs)
        except Exception:
            return False
        return True

    def _fake(self, title: str, changed: Mapping[str, Any]) -> Outcomes:
        args, kwargs = self._arguments(changed)
        try:
            real = looks(self.op(*args, **kwargs))
        except Exception:
            return
        mode = FakeTensorMode()
        args, kwargs = tree_map(
            lambda item: mode.from_tensor(item) if isinstance(item, torch.Tensor) else item, self._arguments(changed)
        )
        try:
            with mode:
                fake = looks(self.op(*args, **kwargs))
        except Exception as error:
            yield title, failure(error)
            return
        yield title, Seen("right", result=real) if fake == real else Seen("wrong", f"fake {fake}, real {real}")

    def _vmap(self, title: str, changed: Mapping[str, Any]) -> Outcomes:
        (first, *args), kwargs = self._arguments(changed)
        try:
            one_by_one = digest(torch.stack([self.op(part, *args, **kwargs) for part in first]))
        except Exception:
            return
        try:
            together = digest(torch.vmap(lambda part: self.op(part, *args, **kwargs))(first))
        except Exception as error:
            yield title, failure(error)
            return
        yield (
            title,
            Seen("right", result=together) if together == one_by_one else Seen("wrong", "not the calls one by one"),
        )

    def _arguments(self, changed: Mapping[str, Any], *, every: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of a call: those without a default, those up to the last changed one, or all."""
        positional = [item for item in self.schema.arguments if not item.kwarg_only]
        last = max((place for place, item in enumerate(positional) if item.name in changed or every), default=-1)
        args = [
            self._value(item, changed)
            for place, item in enumerate(positional)
            if place <= last or not item.has_default_value()
        ]
        kwargs = {
            item.name: self._value(item, changed)
            for item in self.schema.arguments
            if item.kwarg_only and (every or item.name in changed or not item.has_default_value())
        }
        return args, kwargs

    def _value(self, argument: Any, changed: Mapping[str, Any]) -> object:
        return copied(changed[argument.name] if argument.name in changed else values(argument)[0])

"""Kernels that TileLang compiles, in interpreted code: they return tensors as the parameters of ``out_idx`` are annotated.

``@tilelang.jit(out_idx=[-1])`` makes of a function that returns a ``@T.prim_func`` one that returns a compiled kernel. A call of
that passes the other parameters, whose shapes must be the annotated ones, and returns the new outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, ExecutionDialect
from opschema_cli.evaluation.execution.values import Closure, DtypeValue, Native, Opaque, TensorValue
from opschema_cli.schema.dtypes import canonical, is_dtype

_LANGUAGE = "tilelang.language."


class PrimFunc(msgspec.Struct, frozen=True, eq=False):
    """A ``prim_func``: the annotations of its parameters."""

    params: tuple[object, ...]


class TileLang:
    """The results of TileLang's kernels. ``passed`` are the tensors of the last kernel call, each with the declared one; if
    calls are ``lenient``, ``refused`` says whether a kernel would have rejected one.
    """

    def __init__(self) -> None:
        self.lenient = False
        self.refused = False
        self.passed: list[tuple[object, TensorValue]] = []
        functions = {
            "tilelang.jit": self._jit,
            f"{_LANGUAGE}prim_func": _prim_func,
            f"{_LANGUAGE}Tensor": _tensor,
            f"{_LANGUAGE}Buffer": _tensor,
        }
        self.dialect = ExecutionDialect(functions=functions.get, value=_value)

    def _jit(self, call: Call) -> object:
        words = dict(call.keywords)
        outputs = words.get("out_idx")
        if len(call.positional) == 1 and isinstance(call.positional[0], Closure):
            return self._factory(call.positional[0], outputs)
        return (
            Native("jit", lambda made: self._factory(made.positional[0], outputs)) if not call.positional else NOT_KNOWN
        )

    def _factory(self, function: object, outputs: object) -> Native:
        def make(call: Call) -> object:
            found = call.machine.call(function, call.positional, call.keywords)
            if not isinstance(found, PrimFunc):
                return call.opaque("a kernel that is compiled at run time")
            indices = _indices(outputs, len(found.params))
            return Native("kernel", lambda run: self._run(run, found.params, indices))

        return Native("factory", make)

    def _run(self, call: Call, params: tuple[object, ...], outputs: Sequence[int] | None) -> object:
        if outputs is None or call.keywords:
            return call.opaque("the outputs of a kernel that is compiled at run time")
        inputs = [param for index, param in enumerate(params) if index not in outputs]
        if len(inputs) != len(call.positional):
            call.throw("ValueError", f"Expected {len(inputs)} inputs, got {len(call.positional)}")
        pairs = zip(call.positional, inputs, strict=True)
        self.passed = [(value, param) for value, param in pairs if isinstance(param, TensorValue)]
        if any(_differ(value, param) for value, param in self.passed):
            self.refused = True
            if not self.lenient:
                call.throw("RuntimeError", "a kernel is passed a tensor of another shape")
        made = [
            params[index] if isinstance(params[index], TensorValue) else call.opaque("an output") for index in outputs
        ]
        return made[0] if len(made) == 1 else made


def _indices(outputs: object, count: int) -> Sequence[int] | None:
    found = [outputs] if isinstance(outputs, int) else outputs
    if not isinstance(found, list | tuple) or not found:
        return None
    plain = [index % count for index in found if isinstance(index, int) and -count <= index < count]
    return plain if len(plain) == len(found) else None


def _differ(value: object, param: TensorValue) -> bool:
    if not isinstance(value, TensorValue) or len(value.shape) != len(param.shape):
        return True
    pairs = zip(value.shape, param.shape, strict=True)
    return any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs)


def _prim_func(call: Call) -> object:
    function = call.positional[0] if call.positional else None
    if not isinstance(function, Closure):
        return NOT_KNOWN
    return PrimFunc(tuple(call.machine.annotations(function)))


def _tensor(call: Call) -> object:
    found = call.bound("shape", "dtype", "data", "strides", "elem_offset", "scope") or {}
    shape, dtype = found.get("shape"), found.get("dtype", "float32")
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, tuple | list):
        return call.opaque("the shape of a tensor")
    known = tuple(size if isinstance(size, int | Opaque) else call.opaque("a size") for size in sizes)
    name = dtype.name if isinstance(dtype, DtypeValue) else dtype
    return TensorValue(known, canonical(name) if isinstance(name, str) and is_dtype(name) else None)


def _value(name: str) -> object:
    last = name.removeprefix(_LANGUAGE)
    return DtypeValue(canonical(last)) if last != name and is_dtype(last) else NOT_KNOWN

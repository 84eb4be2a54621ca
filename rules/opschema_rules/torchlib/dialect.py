"""torch.library for the evaluator: its functions, and the attributes and calls of the values that they make."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from opschema_cli.evaluation.attributes import attribute_of
from opschema_cli.evaluation.calls import applied
from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.evaluator import Evaluator, ExternalCall
from opschema_cli.evaluation.values import UNKNOWN, Arguments, Text, Unknown, Value, Values
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.registering import api_of, library, registered, result
from opschema_rules.torchlib.values import Handle, Inferred, LibraryValue, Method, OpName, Waiting


def _calls(name: str) -> ExternalCall | None:
    """The reader of calls of one function of torch."""
    api = apis.api_of(name)
    if api is not None:
        return partial(_registering, api, apis.is_legacy(name))
    if name in apis.LIBRARIES:
        return partial(_library, name == apis.SCOPED)
    return _infer if name in apis.INFER else None


def _registering(api: apis.Api, legacy: bool, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield registered(evaluator, api, None, arguments, legacy=legacy)


def _library(scoped: bool, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield library(evaluator, arguments, scoped=scoped)


def _infer(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield Inferred(evaluator.decorated(arguments), arguments)


_NAMES = {
    "torch.ops": OpName(()),
    "torch.ao.quantization.fx._decomposed.quantized_decomposed_lib": LibraryValue("quantized_decomposed"),
}
"""Names of torch that refer to values; torch's own library of quantized operators is one that others extend."""

TORCH = Dialect(calls=_calls, names=_NAMES, transparent=apis.TRANSPARENT)


# Attributes


@attribute_of.register(OpName)
def _of_op_name(value: OpName, evaluator: Evaluator, name: str) -> Values:
    if len(value.parts) == 1 and name in ("__name__", "name"):  # torch.ops.NAMESPACE is a module
        return (Text(frozenset({value.parts[0] if name == "name" else f"torch.ops.{value.parts[0]}"})),)
    return (OpName((*value.parts, name)),)


@attribute_of.register(LibraryValue)
def _of_library(value: LibraryValue, evaluator: Evaluator, name: str) -> Values:
    return (Method(value, name),) if name in apis.LIBRARY else UNKNOWN


@attribute_of.register(Handle)
def _of_handle(value: Handle, evaluator: Evaluator, name: str) -> Values:
    if name in apis.HANDLE:
        return (Method(value, name),)
    if name == "_init_fn":
        return (value.function,)
    return (value,) if name in ("_opoverload", "default", "op") else UNKNOWN


# Calls


@applied.register(Method)
def _method(callee: Method, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield registered(evaluator, api_of(callee), callee.receiver, arguments)


@applied.register(Waiting)
def _waiting(callee: Waiting, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield result(evaluator, callee, evaluator.decorated(arguments))


@applied.register(Handle)
@applied.register(OpName)
def _operator(callee: Handle | OpName, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield Unknown("it is the result of an operator")

"""``inspect.signature``: signatures of functions, and code that uses them."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect
from opschema_cli.evaluation.execution.values import BoundMethod, Closure, Native
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Param


class ParameterValue(msgspec.Struct, frozen=True):
    """An ``inspect.Parameter``."""

    param: Param


class SignatureValue(msgspec.Struct, frozen=True, eq=False):
    """An ``inspect.Signature``; ``body`` is the function whose parameters it holds."""

    parameters: tuple[ParameterValue, ...]
    body: Body


def signature_of(function: object) -> SignatureValue | None:
    """Return the signature of a function: the assigned one, that of the wrapped function, or its own."""
    if isinstance(function, BoundMethod):
        found = signature_of(function.function)
        return SignatureValue(found.parameters[1:], found.body) if found is not None and found.parameters else None
    if not isinstance(function, Closure) or function.body.function is None:
        return None
    stated = function.attributes.get("__signature__")
    if isinstance(stated, SignatureValue):
        return stated
    if stated is not None:
        return None
    if "__wrapped__" in function.attributes:
        return signature_of(function.attributes["__wrapped__"])
    return SignatureValue(tuple(map(ParameterValue, function.body.params)), function.body)


def _signature(call: Call) -> object:
    found = signature_of(call.positional[0]) if len(call.positional) == 1 and not call.keywords else None
    return found if found is not None else call.opaque("a signature")


def _attribute(machine: Caller, value: object, name: str) -> object:
    if isinstance(value, SignatureValue):
        if name == "parameters":
            return {item.param.name: item for item in value.parameters}
        return Native("replace", lambda call: _replaced(call, value)) if name == "replace" else NOT_KNOWN
    if isinstance(value, ParameterValue):
        if name == "name":
            return value.param.name
        return Native("replace", lambda call: _renamed(call, value)) if name == "replace" else NOT_KNOWN
    return NOT_KNOWN


def _replaced(call: Call, value: SignatureValue) -> object:
    parameters = call.keywords.get("parameters")
    if call.positional or len(call.keywords) != 1 or not isinstance(parameters, list | tuple):
        return call.opaque("a signature")
    found = tuple(item for item in parameters if isinstance(item, ParameterValue))
    return SignatureValue(found, value.body) if len(found) == len(parameters) else call.opaque("a signature")


def _renamed(call: Call, value: ParameterValue) -> object:
    name = call.keywords.get("name")
    if call.positional or len(call.keywords) != 1 or not isinstance(name, str):
        return call.opaque("a parameter")
    return ParameterValue(msgspec.structs.replace(value.param, name=name))


INSPECT = ExecutionDialect(functions={"inspect.signature": _signature}.get, attribute=_attribute)
"""The part of ``inspect`` that reads signatures."""

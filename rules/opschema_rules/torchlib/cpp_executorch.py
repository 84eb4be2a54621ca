"""Macros of ExecuTorch: ``WRAP_TO_ATEN`` makes kernels for torch, ``EXECUTORCH_LIBRARY`` registers them for its own runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Place
from opschema_cli.phrases import count
from opschema_cli.schema.cpp_inference import inferred_type, mismatches, return_type
from opschema_cli.schema.operator_schema import OperatorSchema, SchemaType
from opschema_rules.torchlib.cpp_facts import CppCall
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import CppRegistration, Registration

LIBRARY = "EXECUTORCH_LIBRARY"
"""The macro that registers a kernel for ExecuTorch's runtime."""

WRAPPED = re.compile(r"WRAP_TO_ATEN\s*\(\s*(?P<function>[^,()]+?)\s*(?:,\s*(?P<out>\d+)\s*)?\)")
"""``WRAP_TO_ATEN(f, N)``: the function ``f`` of ExecuTorch for torch's types, with the index of its first out argument."""

_TYPES = re.compile(r"(?:::)?\b(?:executorch::(?:aten|runtime(?:::etensor)?)|torch::executor|exec_aten)::(?=\w)")
_CONTEXT = re.compile(r"(?:::)?(?:\w+::)*(?:Kernel)?RuntimeContext\s*&")
_OTHER_CONTEXT = re.compile(r"(?:const\s+)?(?:::)?(?:\w+::)*(?:Kernel)?RuntimeContext(?:\s+const\b)?\s*[*&]{0,2}")


def with_aten_types(signature: CppSignature) -> CppSignature:
    """The signature with torch's types in place of those of ExecuTorch."""
    parameters = tuple(replace(item, type=_TYPES.sub("at::", item.type)) for item in signature.parameters)
    return replace(signature, parameters=parameters, returns=_TYPES.sub("at::", signature.returns))


def takes_context(signature: CppSignature) -> bool:
    """Whether the first parameter is the context that ExecuTorch passes."""
    return bool(signature.parameters) and _CONTEXT.fullmatch(signature.parameters[0].type.strip()) is not None


def takes_other_context(signature: CppSignature) -> bool:
    """Whether the first parameter is the context in a way in which it is not passed: constant, a pointer or a copy."""
    first = signature.parameters[0].type.strip() if signature.parameters else ""
    return not takes_context(signature) and _OTHER_CONTEXT.fullmatch(first) is not None


def runtime_kernel(path: str, call: CppCall) -> CppRegistration | None:
    """Return the kernel that a call of ``EXECUTORCH_LIBRARY`` registers; None for any other call."""
    if call.method != LIBRARY or len(call.arguments) != 3:
        return None
    namespace, name, function = call.arguments
    if name.literal is None or name.partial or not namespace.text.isidentifier():
        return None
    registration = Registration(
        "kernel", Place(path, call.span), None, language="cpp", form=LIBRARY, symbol=function.text
    )
    title = f"{namespace.text}::{name.literal.value}"
    return CppRegistration(title, registration, call.conditions, function.text, path)


def runtime_misfits(signature: CppSignature, schema: OperatorSchema, title: str) -> Iterator[tuple[str, int | None]]:
    """The differences of a kernel that takes the context from the schema of its operator, and the parameters that have them."""
    for one in mismatches(schema, [item.type for item in signature.parameters[1:]], "void", stable=True):
        if one.kind == "count":
            takes = f"takes {count(int(one.found), 'argument')} after the context"
            yield f"{signature.shown} {takes}, the schema of `{title}` has {one.wanted}: every call fails", None
        elif not one.kind.startswith("returned"):
            argument, written = schema.arguments[one.index], signature.parameters[one.index + 1]
            if _may_be_read(argument.type, inferred_type(written.type)):
                continue
            meant = return_type(argument.type).replace("c10::SymInt", "int64_t")
            write = f" (`{meant}`)" if meant else ""
            wanted = f"the schema of `{title}` has `{one.wanted} {argument.name}`{write}"
            yield f"{signature.shown} takes `{written.type}` where {wanted}: every call fails", one.index + 1


_INTEGERS = frozenset(("int", "SymInt", "ScalarType", "Layout", "MemoryFormat", "Device", "DeviceIndex"))
_NUMBERS = frozenset(("int", "SymInt", "float", "SymFloat", "bool", "SymBool", "Scalar", "number"))


def _may_be_read(declared: SchemaType, taken: SchemaType | None) -> bool:
    """Whether the runtime may read a value of one type as another: it stores a value other than None in the same way whether or
    not it is optional, stores dtypes and similar values as integers, and a ``Scalar`` as its number.
    """
    if taken is None:
        return True
    first, second = (one.inner if one.optional and one.inner is not None else one for one in (declared, taken))
    if first.inner is not None or second.inner is not None:
        return first == second
    names = {first.name, second.name}
    return len(names) == 1 or names <= _INTEGERS or (names <= _NUMBERS and not names.isdisjoint(("Scalar", "number")))

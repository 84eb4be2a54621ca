"""Attaches functions to C++ registrations, and to definitions without a schema the schema of their function."""

from __future__ import annotations

from msgspec.structs import replace

from opschema_cli.cpp_units import CppUnits
from opschema_cli.schema.cpp_inference import inferred_type, returned_types
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.cpp_kernels import Asked, CppKernels
from opschema_rules.torchlib.cpp_model import CppDefinition, CppOperators
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import CppRegistration


def with_kernels(units: CppUnits, found: CppOperators) -> CppOperators:
    """Return the operators with the functions of their registrations."""
    asked = [_asked(item) for item in found.registrations]
    runtime = [replace(_asked(item), runtime=True) for item in found.runtime_kernels]
    kernels = CppKernels(units, [*asked, *runtime], found.made)
    registrations = [
        replace(item, registration=replace(item.registration, kernels=kernels.find(one)))
        if item.registration.role != "fallthrough" and "makeFromBoxed" not in item.function
        else item
        for item, one in zip(found.registrations, asked, strict=True)
    ]
    by_place = {item.registration.place: item for item in registrations}
    definitions = [_with_schema(item, by_place.get(item.definition.place)) for item in found.definitions]
    runtime_kernels = [
        replace(item, registration=replace(item.registration, kernels=kernels.find(one)))
        for item, one in zip(found.runtime_kernels, runtime, strict=True)
    ]
    return replace(found, registrations=registrations, definitions=definitions, runtime_kernels=runtime_kernels)


def _asked(item: CppRegistration) -> Asked:
    return Asked(item.function, item.path, item.registration.place, item.namespace, tuple(item.conditions), item.stable)


def _with_schema(item: CppDefinition, own: CppRegistration | None) -> CppDefinition:
    """A definition by name alone with the schema that torch infers from its function."""
    if item.definition.explicit or item.name is None or own is None or own.name != item.name:
        return item
    kernels = own.registration.kernels
    if kernels is None or isinstance(kernels, Unresolved) or len(kernels) != 1:
        return item
    schema = schema_of(item.name, kernels[0])
    return replace(item, definition=replace(item.definition, schema=schema)) if schema is not None else item


def schema_of(name: str, signature: CppSignature) -> OperatorSchema | None:
    """The schema that torch infers from a function: its arguments are `_0`, `_1` and so on."""
    types = [inferred_type(item) for item in signature.parameter_types]
    returns = returned_types(signature.returns)
    arguments = tuple(Argument(f"_{index}", one) for index, one in enumerate(types) if one is not None)
    returned = tuple(Return(one) for one in returns or () if one is not None)
    if returns is None or len(arguments) != len(types) or len(returned) != len(returns):
        return None
    namespace, _, own = name.rpartition("::")
    plain, _, overload = own.partition(".")
    return OperatorSchema(plain, arguments, returned, namespace=namespace, overload=overload)

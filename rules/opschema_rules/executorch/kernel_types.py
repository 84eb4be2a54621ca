"""The C++ signature that ExecuTorch's code generator declares for the kernel of a schema.

The table is that of ``codegen/api/et_cpp.py``: types are spelt as :mod:`opschema_cli.schema.cpp_spelling` spells them.
"""

from __future__ import annotations

from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return, SchemaType

_BASES = {
    "int": "int64_t",
    "SymInt": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "string_view",
    "ScalarType": "ScalarType",
    "MemoryFormat": "MemoryFormat",
}
_BY_REFERENCE = ("Tensor", "Scalar")

TYPES = frozenset({*_BASES, *_BY_REFERENCE})
"""The base types that the code generator translates."""


def parameter_type(of: SchemaType, *, write: bool = False) -> str | None:
    """The C++ type of an argument; None if the code generator has none, or none that is worth comparing."""
    if of.inner is None:
        if of.name in _BY_REFERENCE:
            return "Tensor&" if of.name == "Tensor" and write else f"const {of.name}&"
        return _BASES.get(of.name)
    if of.optional:
        if of.inner.name in _BY_REFERENCE:
            return "Tensor&" if of.inner.name == "Tensor" and write else f"const optional<{of.inner.name}>&"
        inner = parameter_type(of.inner)
        return f"optional<{inner}>" if inner is not None else None
    return _list_type(of)


def _list_type(of: SchemaType) -> str | None:
    item = str(of.inner)
    if item in ("Tensor", "Tensor?"):
        return "ArrayRef<Tensor>" if item == "Tensor" else "ArrayRef<optional<Tensor>>"
    inner = _BASES.get(item)
    return f"ArrayRef<{inner}>" if inner is not None and (item != "bool" or of.size is not None) else None


def argument_type(argument: Argument) -> str | None:
    """The C++ type of an argument."""
    return parameter_type(argument.type, write=argument.is_write)


def arguments_of(schema: OperatorSchema) -> tuple[Argument, ...]:
    """Return the arguments in the order of the C++ function: those after ``*`` come last."""
    outs = tuple(item for item in schema.arguments if item.kwarg_only and item.is_write)
    return (*(item for item in schema.arguments if item not in outs), *outs)


def returned_type(schema: OperatorSchema) -> str | None:
    """The C++ type that the function returns."""
    types = [_returned(item.type, write=item.alias is not None and item.alias.write) for item in schema.returns]
    known = [item for item in types if item is not None]
    if len(known) != len(types):
        return None
    return "void" if not known else known[0] if len(known) == 1 else f"tuple<{','.join(known)}>"


def _returned(of: SchemaType, *, write: bool) -> str | None:
    if of.inner is None:
        return ("Tensor&" if write else of.name) if of.name in _BY_REFERENCE else _BASES.get(of.name)
    if of.optional:
        inner = _returned(of.inner, write=False)
        return f"optional<{inner}>" if inner is not None and of.inner.name not in _BY_REFERENCE else None
    inner = _returned(of.inner, write=False)
    return f"vector<{inner}>" if inner is not None else None


def untranslated(schema: OperatorSchema) -> list[Argument | Return]:
    """The arguments and returns for whose types the code generator has no C++ type: it fails on them."""
    return [item for item in schema.slots if not _is_translated(item.type)]


def _is_translated(of: SchemaType) -> bool:
    if of.items:
        return False
    if of.is_list and str(of.inner) == "bool" and of.size is None:
        return False
    return of.base in TYPES

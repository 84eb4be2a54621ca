"""Schema types that torch infers from C++ types (``c10::detail::infer_schema``), and whether they are those of a schema.

Torch compares the types of a kernel with those of its operator when the kernel is registered. A kernel without any ``SymInt``
gets integers in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.schema.operator_schema import OperatorSchema, SchemaType

_PLAIN = {
    "DeviceIndex": "int",
    "IValue": "Any",
    "bool": "bool",
    "double": "float",
    "int64_t": "int",
    "int8_t": "int",
    "string": "str",
    "string_view": "str",
    "complex<double>": "complex",
    **{name: name for name in ("Tensor", "Scalar", "ScalarType", "Layout", "Device", "MemoryFormat", "QScheme")},
    **{name: name for name in ("Storage", "Stream", "SymInt", "SymBool", "SymFloat")},
}
_LISTS = ("ArrayRef", "IListRef", "List", "vector", "array")
_SIGNED = (
    dict.fromkeys(("short", "char", "unsigned", "long long"), "int64_t")
    | {"float": "double"}
    | {f"{sign}int{bits}": "int64_t" for sign in ("", "u") for bits in ("", "16_t", "32_t", "64_t")}
)
_REFUSED = {name: meant for name, meant in _SIGNED.items() if name not in ("int64_t", "uint")} | {"uint8_t": "int64_t"}
"""Numbers that torch refuses to compile, and those that it takes in their place."""

_GENERIC = re.compile(r"(\w+)<(.*)>")
_SYMINT = re.compile(r"(?:optional<)?(?:ArrayRef<)?SymInt>{0,2}")

INTEGER, SYMINT = SchemaType("int"), SchemaType("SymInt")


def plain_type(written: str) -> str | None:
    """The spelling of a C++ type without references and ``const``; None if it is not known."""
    found = spelling(written)
    if found is None or "*" in found:
        return None
    return found.removeprefix("const ").rstrip("&")


def inferred_type(written: str) -> SchemaType | None:
    """The type of a schema that torch takes a C++ type for; None if it is not known, or torch takes it for none."""
    found = plain_type(written)
    return _inferred(found) if found is not None else None


def _inferred(name: str) -> SchemaType | None:
    if name in _PLAIN:
        return SchemaType(_PLAIN[name])
    if name == "Generator":
        return SchemaType(inner=SchemaType("Generator"), optional=True)
    generic = _GENERIC.fullmatch(name)
    if generic is None:
        return None
    items = [_inferred(item) for item in split_arguments(generic[2])]
    known = [item for item in items if item is not None]
    if generic[1] == "array":
        known, items = known[:1], items[:1]
    if len(known) != len(items) or not known:
        return None
    return _composed(generic[1], known)


def _composed(name: str, items: Sequence[SchemaType]) -> SchemaType | None:
    if name == "optional":
        return items[0] if items[0].optional else SchemaType(inner=items[0], optional=True)
    if name in _LISTS:
        # Torch looks for SymInt in these lists alone, and infers something else from others.
        return None if items[0] == SYMINT and name != "ArrayRef" else SchemaType(inner=items[0])
    if name == "tuple":
        return SchemaType("Tuple", items=tuple(items))
    return SchemaType("Dict", items=tuple(items)) if name in ("Dict", "unordered_map") else None


def split_arguments(text: str) -> list[str]:
    """The arguments of a template."""
    if not text.strip():
        return []
    found, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found


def refused_type(written: str) -> str:
    """Return the C++ type to use in place of one that no kernel may take or return, or an empty string for all others."""
    found = spelling(written)
    if found is None:
        return ""
    if found == "const char*":
        return "c10::string_view"
    composed = re.fullmatch(r"(optional)<(\w+)>|(?:const )?(vector|ArrayRef)<(\w+)>&?", found)
    if composed is None:
        return _REFUSED.get(found, "")
    meant = _REFUSED.get(composed[2] or composed[4], "")
    outer = composed[1] or composed[3]
    return f"{'at' if outer == 'ArrayRef' else 'std'}::{outer}<{meant}>" if meant else ""


def returned_types(written: str) -> tuple[SchemaType | None, ...] | None:
    """The types of the values that a C++ function returns, of a tuple each; None if it is not known how many."""
    found = plain_type(written)
    if found == "void":
        return ()
    generic = _GENERIC.fullmatch(found) if found is not None else None
    if generic is not None and generic[1] == "tuple":
        return tuple(map(_inferred, split_arguments(generic[2])))
    outer = re.match(r"\s*(?:::)?\s*(?:std\s*::\s*)?tuple\s*<(.*)>\s*\Z", written, re.DOTALL) if found is None else None
    if outer is not None:
        return tuple(inferred_type(item) for item in split_arguments(outer[1]))
    return (_inferred(found),) if found is not None else None


class CppMismatch(msgspec.Struct, frozen=True):
    """A difference of a C++ function from a schema.

    ``kind`` is ``count``, ``type``, ``returned-count`` or ``returned-type``, ``index`` that of the argument or the returned
    value; ``wanted`` and ``found`` are schema types, or numbers.
    """

    kind: str
    index: int
    wanted: str
    found: str


def unpacked_count(written: str) -> int | None:
    """The number of values in the tuple or pair that a function returns by its C++ type, 0 for none; None for other types."""
    found = plain_type(written)
    generic = _GENERIC.fullmatch(found or "")
    is_tuple = generic is not None and generic[1] in ("tuple", "pair")
    return 0 if found == "void" else len(split_arguments(generic[2])) if generic is not None and is_tuple else None


def mismatches(
    schema: OperatorSchema, parameters: Sequence[str], returns: str, *, stable: bool = False
) -> list[CppMismatch]:
    """Differences for which torch refuses a function as a kernel; a ``stable`` one only when it is called.

    ``parameters`` are C++ types without the ``DispatchKeySet`` that a kernel may take first.
    """
    if schema.vararg or schema.varret:
        return []
    found = list(_arguments_of(schema, parameters, stable=stable))
    returned = returned_types(returns)
    if returned is None:
        return found
    if len(returned) != len(schema.returns):
        wanted = str(len(schema.returns))
        return [*found, CppMismatch("returned-count", 0, wanted, str(len(returned)))]
    for index, (wanted_return, one) in enumerate(zip(schema.returns, returned, strict=True)):
        if one is not None and _differ(wanted_return.type, one, symint=not stable, stable=stable):
            found.append(CppMismatch("returned-type", index, str(wanted_return.type), str(one)))
    return found


def _arguments_of(schema: OperatorSchema, parameters: Sequence[str], *, stable: bool) -> Iterable[CppMismatch]:
    if len(parameters) != len(schema.arguments):
        yield CppMismatch("count", 0, str(len(schema.arguments)), str(len(parameters)))
        return
    types = [inferred_type(item) for item in parameters]
    symint = takes_symint(parameters)
    for index, (argument, one) in enumerate(zip(schema.arguments, types, strict=True)):
        if one is not None and _differ(argument.type, one, symint=symint, stable=stable):
            yield CppMismatch("type", index, str(argument.type), str(one))


def takes_symint(parameters: Iterable[str]) -> bool:
    """Whether torch considers that a function takes ``SymInt``. References do not count."""
    return any(found is not None and _SYMINT.fullmatch(found) for found in map(spelling, parameters))


_CONCRETE = {"SymInt": "int", "DeviceIndex": "int", "number": "Scalar", "DimVector": "int"}
_STABLE = {**_CONCRETE, **dict.fromkeys(("bool", "SymBool", "ScalarType", "Layout", "MemoryFormat"), "int")}
"""The stable ABI passes numbers of these types alike."""


def _differ(wanted: SchemaType, found: SchemaType, *, symint: bool, stable: bool) -> bool:
    if any(part.name.startswith("__torch__") for part in wanted.parts()):
        return False
    names = _STABLE if stable else _CONCRETE
    return _concrete(wanted, names, symint) != _concrete(found, names, not stable)


def _concrete(of: SchemaType, names: Mapping[str, str], symint: bool) -> tuple[object, ...]:
    """A type as torch compares it: lists of any size alike, integers for SymInt where the kernel knows none."""
    if of.inner is not None:
        return ("?" if of.optional else "[]", _concrete(of.inner, names, symint))
    name = of.name if symint and of.name == "SymInt" else names.get(of.name, of.name)
    return (name, *(_concrete(item, names, symint) for item in of.items))


_CPP = {
    "Any": "c10::IValue", "Device": "at::Device", "DeviceIndex": "int64_t", "Layout": "at::Layout",
    "MemoryFormat": "at::MemoryFormat", "QScheme": "at::QScheme", "Scalar": "const at::Scalar&", "ScalarType": "at::ScalarType",
    "Storage": "at::Storage", "Stream": "at::Stream", "SymBool": "c10::SymBool", "SymInt": "c10::SymInt", "bool": "bool",
    "complex": "c10::complex<double>", "float": "double", "int": "int64_t", "number": "const at::Scalar&",
    "str": "c10::string_view",
}  # fmt: skip
_CPP_LISTS = {"Tensor": "at::TensorList", "int": "at::IntArrayRef", "SymInt": "c10::SymIntArrayRef"}


def parameter_type(of: SchemaType, *, write: bool = False) -> str:
    """Return the recommended C++ type for a parameter of a schema type, or an empty string if there is none."""
    if of.inner is None:
        return ("at::Tensor&" if write else "const at::Tensor&") if of.name == "Tensor" else _CPP.get(of.name, "")
    if of.is_list:
        listed = "" if str(of.inner) == "bool" else _CPP_LISTS.get(str(of.inner)) or f"at::ArrayRef<{_value(of.inner)}>"
        return "const c10::List<std::optional<at::Tensor>>&" if str(of.inner) == "Tensor?" else listed
    inner = "at::Generator" if of.inner.name == "Generator" else _value(of.inner)
    return inner and (f"const std::optional<{inner}>&" if inner == "at::Tensor" else f"std::optional<{inner}>")


def return_type(of: SchemaType) -> str:
    """Return the recommended C++ type for a returned value, or an empty string if there is none."""
    if of.is_list and of.inner is not None:
        inner = _value(of.inner)
        return inner and f"std::vector<{inner}>"
    return "std::string" if of.name == "str" else _value(of)


def _value(of: SchemaType) -> str:
    """A type without reference."""
    return parameter_type(of).removeprefix("const ").removesuffix("&")

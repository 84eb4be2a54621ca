"""Operator schemas as C++: the signature of an operator's kernel, as torchgen writes it.

The tables are those of ``torchgen.api.cpp``, ``.dispatcher`` and ``.native`` (torch 2.13).
:mod:`opschema_cli.schema.cpp_spelling` compares the types with others that are written by hand.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.schema.operator_schema import OperatorSchema, Return, SchemaType
from opschema_cli.source.text import Span
from opschema_rules.aten.model import Function

Convention: TypeAlias = Literal["dispatcher", "native"]
"""Calling conventions of kernels: outside PyTorch's tree that of the dispatcher, inside that of ``at::native`` functions."""

TENSOR, SCALAR, OPTIONAL_TENSOR = "at::Tensor", "at::Scalar", "::std::optional<at::Tensor>"

_BASES = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "c10::string_view",
    "Generator": "at::Generator",
    "ScalarType": "at::ScalarType",
    "DimVector": "at::DimVector",
    "Layout": "at::Layout",
    "Device": "at::Device",
    "DeviceIndex": "at::DeviceIndex",
    "MemoryFormat": "at::MemoryFormat",
    "QScheme": "at::QScheme",
    "Storage": "at::Storage",
    "Stream": "at::Stream",
    "SymBool": "c10::SymBool",
}

_LISTS = {"int": "at::IntArrayRef", "Tensor": "at::TensorList", "Scalar": f"at::ArrayRef<{SCALAR}>"}


class _UnwritableError(Exception):
    """torchgen writes no such type."""


class CppParameter(msgspec.Struct, frozen=True, array_like=True):
    """A parameter of a kernel."""

    type: str
    name: str


class CppSignature(msgspec.Struct, frozen=True, array_like=True):
    """A kernel's name, parameters and result, with types as torchgen writes them."""

    name: str
    parameters: tuple[CppParameter, ...]
    returns: str

    def __str__(self) -> str:
        parameters = ", ".join(f"{item.type} {item.name}" for item in self.parameters)
        return f"{self.returns} {self.name}({parameters})"


class OperatorKernel(msgspec.Struct, frozen=True, array_like=True):
    """An operator with its schema, and the signatures of its kernel: ``plain``, and ``symint`` if an argument holds a SymInt.

    ``span`` is where its native_functions.yaml writes the schema, or that of the operator that it is generated for.
    """

    name: str
    schema: str
    span: Span
    plain: CppSignature | None
    symint: CppSignature | None = None

    def signature(self, *, symint: bool) -> CppSignature | None:
        """One of the two; None if torchgen does not write it."""
        return self.symint if symint else self.plain

    @property
    def signatures(self) -> tuple[CppSignature, ...]:
        """The signatures that there are."""
        return tuple(item for item in (self.plain, self.symint) if item is not None)


def operator_kernel(function: Function) -> OperatorKernel:
    """The signatures of an operator's kernel in a backend outside of PyTorch's tree."""
    symint = kernel_signature(function, symint=True) if has_symint(function.schema) else None
    span = function.entry.place.span
    return OperatorKernel(function.name, str(function.schema), span, kernel_signature(function), symint)


def is_out(schema: OperatorSchema) -> bool:
    """Whether an operator writes its results into arguments after ``*``."""
    return any(item.is_write for item in schema.kwarg_only)


def kernel_name(schema: OperatorSchema, *, symint: bool = False) -> str:
    """The name of an operator's kernel in a backend outside of PyTorch's tree; ``symint`` if it takes ``c10::SymInt``."""
    return f"{schema.name}{'_out' if is_out(schema) else ''}{'_symint' if symint else ''}"


def has_symint(schema: OperatorSchema) -> bool:
    """Whether an argument is a SymInt, or contains one."""
    return any(item.type.base == "SymInt" for item in schema.arguments)


def kernel_signature(
    function: Function, *, symint: bool = False, convention: Convention = "dispatcher"
) -> CppSignature | None:
    """The signature of an operator's kernel; None if it has a type for which torchgen writes no C++."""
    schema, entry = function.schema, function.entry
    types = _Types(
        symint=symint,
        const_tensors=entry.flag("use_const_ref_for_mutable_tensors") is True,
        any_list=not function.generated
        and (entry.flag("structured") is True or entry.get("structured_delegate") is not None),
        native=convention == "native",
    )
    try:
        parameters = tuple(
            CppParameter(types.argument(item.type, write=item.is_write), item.name) for item in schema.arguments
        )
        return CppSignature(kernel_name(schema, symint=symint), parameters, types.returns(schema.returns))
    except _UnwritableError:
        return None


class _Types(msgspec.Struct, frozen=True):
    """C++ types of one operator.

    ``const_tensors`` is its field ``use_const_ref_for_mutable_tensors``; lists of tensors are ``any_list`` in a structured group.
    """

    symint: bool
    const_tensors: bool
    any_list: bool
    native: bool

    def argument(self, of: SchemaType, *, write: bool) -> str:
        value = self._value(of, symint=self.symint)
        if value is not None:
            return value
        if of.inner is None:
            return self._reference(TENSOR, write=write) if of.name == "Tensor" else f"const {SCALAR} &"
        return self._optional(of.inner, write=write) if of.optional else self._list(of.inner, write=write)

    def _optional(self, inner: SchemaType, *, write: bool) -> str:
        if inner.name == "Tensor":
            written = write and not self.const_tensors
            # The dispatcher's convention drops the optional of a tensor that is written.
            of = TENSOR if written and not self.native else OPTIONAL_TENSOR
            return self._reference(of, write=write)
        if inner.name == "Scalar":
            return f"const ::std::optional<{SCALAR}> &"
        if inner.is_list and inner.inner is not None and inner.inner.name in ("int", "SymInt"):
            symint = self.symint and inner.inner.name == "SymInt"
            return "at::OptionalSymIntArrayRef" if symint else "at::OptionalIntArrayRef"
        return f"::std::optional<{self.argument(inner, write=write)}>"

    def _list(self, inner: SchemaType, *, write: bool) -> str:
        if str(inner) == "Tensor?":
            return f"const c10::List<{OPTIONAL_TENSOR}> &"
        if inner.name == "Tensor" and self.any_list:
            return "const at::ITensorListRef &"
        if inner.name == "SymInt":
            return "c10::SymIntArrayRef" if self.symint else _LISTS["int"]
        return _LISTS.get(inner.name) or f"at::ArrayRef<{self.argument(inner, write=write)}>"

    def _value(self, of: SchemaType, *, symint: bool) -> str | None:
        """The C++ type of a value passed by value: a number and its like, an optional one, an array of booleans; else None."""
        if of.inner is None:
            return self._base(of, symint=symint)
        if of.optional:
            inner = self._value(of.inner, symint=symint)
            return f"::std::optional<{inner}>" if inner is not None else None
        if of.inner.name != "bool":
            return None
        if of.size is None:
            raise _UnwritableError
        return f"::std::array<bool,{of.size}>"

    def _base(self, of: SchemaType, *, symint: bool) -> str | None:
        if of.name in ("Tensor", "Scalar"):
            return None
        if of.name == "SymInt":
            return "c10::SymInt" if symint else "int64_t"
        if of.name not in _BASES or of.items:
            raise _UnwritableError
        return _BASES[of.name]

    def _reference(self, of: str, *, write: bool) -> str:
        return f"{of} &" if write and not self.const_tensors else f"const {of} &"

    def returns(self, returns: tuple[Return, ...]) -> str:
        if not returns:
            return "void"
        found = [self._returned(item.type, write=item.alias is not None and item.alias.write) for item in returns]
        return found[0] if len(found) == 1 else f"::std::tuple<{','.join(found)}>"

    def _returned(self, of: SchemaType, *, write: bool) -> str:
        value = self._value(of, symint=True)
        if value is not None:
            return value
        if of.inner is None:
            if of.name == "Scalar":
                return SCALAR
            return self._reference(TENSOR, write=True) if write else TENSOR
        if of.is_list and not write and of.size is None:
            return f"::std::vector<{self._returned(of.inner, write=False)}>"
        if of.optional and of.inner.name == "Tensor":
            return f"::std::optional<{self._returned(of.inner, write=write)}>"
        raise _UnwritableError

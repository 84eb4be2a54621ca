"""C++ functions against the schemas of the operators that they are registered for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.schema.cpp_inference import (
    CppMismatch,
    parameter_type,
    refused_type,
    return_type,
)
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.preprocessor import exclusive
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import Operator, Registration
from opschema_rules.torchlib.places import declared


@rule("REG501", "cpp-kernel-signature", needs=(CPP,))
def cpp_kernel_signature(operator: Operator) -> Iterator[Diagnostic]:
    """A C++ function that torch refuses as a kernel of its operator.

    Torch infers a schema from the function that `m.impl` or `m.def` is given, and compares it with the operator's when the
    library is loaded: the number of arguments and of returned values, and their types. A difference raises, so that the
    library cannot be imported.

    - `int` is `int64_t`, `float` is `double`, `str` is `c10::string_view` or `std::string`. Other numbers do not compile.
    - `Tensor` is `at::Tensor` or a reference to one, `Tensor?` is `std::optional<at::Tensor>`.
    - Lists are `at::ArrayRef`, `std::vector` or `c10::List`; the size of `int[2]` is not compared.
    - A kernel without any `SymInt` takes integers in their place. One that takes a `SymInt` must take all of them.
    - Nothing is `void`, several values are a `std::tuple`.

    Names, defaults and alias annotations are not compared. A function of the stable ABI (`TORCH_BOX`) is compared when it is
    called. Functions are looked for in the file and in the headers that it includes. A template without arguments, an overload
    that is not cast, and a parameter whose type is not known are not judged.

    Bad (a count, and a type):

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x) { return x; }
    at::Tensor shift(const at::Tensor& x, int64_t by) { return x + by; }

    TORCH_LIBRARY(kit, m) {
      m.def("scale(Tensor x, float factor) -> Tensor", &scale);
      m.def("shift(Tensor x, float by) -> Tensor");
    }
    TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("shift", TORCH_FN(shift)); }
    ```

    Bad (a returned value):

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor fill_(at::Tensor& x, double value) { return x.fill_(value); }

    TORCH_LIBRARY(kit, m) { m.def("fill_(Tensor(a!) x, float value) -> ()", &fill_); }
    ```

    Good:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    std::tuple<at::Tensor, at::Tensor> split(const at::Tensor& x, at::IntArrayRef sizes, std::optional<double> eps) {
      return {x, x};
    }

    TORCH_LIBRARY(kit, m) { m.def("split(Tensor x, SymInt[2] sizes, float? eps=None) -> (Tensor, Tensor)", &split); }
    ```
    """
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or any(item.refused for item in operator.definition.errors):
        return
    for registration, signature in signatures(operator):
        if operator.definition.explicit:
            found = signature.mismatches(schema)
            if found and not all(map(signature.mismatches, operator.other_schemas(registration))):
                continue
            if found and _is_of_another_build(schema, registration, signature):
                continue
            types = [item for item in found if item.kind == "type"]
            for item in found if len(types) == 1 else (*types[:1], *(item for item in found if item.kind != "type")):
                yield _differs(operator, schema, registration, signature, item, types[1:] if item in types else ())


def _is_of_another_build(schema: OperatorSchema, registration: Registration, signature: CppSignature) -> bool:
    """Whether a header declares the function under a condition, and differently under another: the file that registers it may be
    compiled only where the declaration that fits the schema holds.
    """
    kernels = registration.kernels
    if signature.place.path == registration.place.path or kernels is None or isinstance(kernels, Unresolved):
        return False
    return any(not item.mismatches(schema) for item in kernels)


@rule("REG502", "cpp-kernel-type", needs=(CPP,))
def cpp_kernel_type(operator: Operator) -> Iterator[Diagnostic]:
    """A C++ kernel with a type that torch does not compile.

    Integers of a schema are `int64_t` in C++, and its floating-point numbers are `double`. `int`, `float`, `size_t` and the
    like fail a `static_assert` in torch's headers; lists of them are refused when the library is loaded.

    Bad:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, float factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor", &scale); }
    ```

    Good:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor", &scale); }
    ```
    """
    for registration, signature in signatures(operator):
        if not signature.stable:
            yield from refused_types(operator.title, registration, signature)


def signatures(operator: Operator) -> Iterator[tuple[Registration, CppSignature]]:
    """The C++ functions that are registered for an operator, in builds that define it.

    Where several definitions have its name, those in other files may be for another.
    """
    claims = operator.tree.claims
    alone = claims[""] == 0 and all(claims[name] == 1 for name in operator.names or ())
    definition = operator.definition
    for registration in operator.registrations:
        if registration.kernels is None or isinstance(registration.kernels, Unresolved):
            continue
        if alone or registration.place.path == definition.place.path:
            known = (item for item in registration.kernels if not exclusive(item.conditions, definition.conditions))
            yield from ((registration, item) for item in known)


def refused_types(title: str, registration: Registration, signature: CppSignature) -> Iterator[Diagnostic]:
    """Yield findings on number types that do not compile with torch, in a function's parameters and result."""
    for item, place in zip(signature.parameters, signature.places, strict=True):
        meant = refused_type(item.type)
        if meant:
            name = f" as `{item.name}`" if item.name else ""
            message = f"{signature.shown} takes `{item.type}`{name}, which torch {_fate(meant)}; write `{meant}`"
            yield Diagnostic(message, place, related=(registered(registration, title),), ops=(title,))
    meant = refused_type(signature.returns)
    if meant:
        message = f"{signature.shown} returns `{signature.returns}`, which torch {_fate(meant)}; write `{meant}`"
        yield Diagnostic(message, signature.place, related=(registered(registration, title),), ops=(title,))


def _fate(meant: str) -> str:
    """The way in which torch refuses a type; ``meant`` is the one to write in its place."""
    listed = meant.startswith(("std::vector<", "at::ArrayRef<"))
    return "refuses when the library is loaded" if listed else "does not compile"


def registered(registration: Registration, title: str) -> Related:
    """The registering call, as the other side of a finding."""
    return Related(registration.place, f"registered here for `{title}`")


def _differs(
    operator: Operator,
    schema: OperatorSchema,
    registration: Registration,
    signature: CppSignature,
    item: CppMismatch,
    others: Sequence[CppMismatch] = (),
) -> Diagnostic:
    """A finding for a difference; of several types that differ, one for all: mostly the arguments are shifted."""
    types = [item, *others] if item.kind == "type" else []
    sides = declared(operator, [schema.arguments[one.index] for one in types] or schema.arguments[:1])
    wrong = bool(types) and all({one.found, one.wanted} <= {"int", "SymInt", "float", "bool"} for one in types)
    of_stable = "it gets another value" if wrong else "every call fails"
    when = of_stable if signature.stable else "torch refuses it when the library is loaded"
    more = (
        f"; {count(len(others), 'further argument')} {'differs' if len(others) == 1 else 'differ'}, too"
        if others
        else ""
    )
    written = (Related(signature.places[one.index], f"the schema has `{_argument(schema, one)}`") for one in others)
    return Diagnostic(
        f"{mismatch_words(operator.title, schema, signature, item)}{more}: {when}",
        mismatch_place(signature, item),
        related=(*written, *sides, registered(registration, operator.title)),
        ops=(operator.title,),
    )


def _argument(schema: OperatorSchema, item: CppMismatch) -> str:
    return f"{item.wanted} {schema.arguments[item.index].name}"


def mismatch_place(signature: CppSignature, item: CppMismatch) -> Place:
    """The place of a difference."""
    return signature.places[item.index] if item.kind == "type" else signature.place


def mismatch_words(title: str, schema: OperatorSchema, signature: CppSignature, item: CppMismatch) -> str:
    """A difference of a function from the schema of its operator, for messages."""
    if item.kind == "count":
        return (
            f"{signature.shown} takes {count(int(item.found), 'argument')}, the schema of `{title}` has {item.wanted}"
        )
    if item.kind == "returned-count":
        found = count(int(item.found), "value") if item.found != "0" else "nothing"
        wanted = item.wanted if item.wanted != "0" else "none"
        return f"{signature.shown} returns {found}, the schema of `{title}` has {wanted}"
    if item.kind == "returned-type":
        meant = return_type(schema.returns[item.index].type)
        write = f" (`{meant}`)" if meant else ""
        return f"{signature.shown} returns `{signature.returns}`, the schema of `{title}` has `{item.wanted}`{write}"
    argument, written = schema.arguments[item.index], signature.parameters[item.index]
    meant = parameter_type(argument.type, write=argument.is_write)
    write = f" (`{meant}`)" if meant else ""
    return (
        f"{signature.shown} takes `{written.type}` where the schema of `{title}` has"
        f" `{item.wanted} {argument.name}`{write}"
    )

"""Kernels of ExecuTorch against the schemas of their operators."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.schema.cpp_inference import plain_type
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.cpp_executorch import LIBRARY, WRAPPED, runtime_misfits, takes_context
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import CppRegistration, Operator, Tree
from opschema_rules.torchlib.operators import nearest, plain_name


@rule("REG508", "executorch-kernel", needs=(CPP,))
def executorch_kernel(tree: Tree) -> Iterator[Diagnostic]:
    """A C++ function that ExecuTorch's macros cannot take as a kernel of its operator.

    `EXECUTORCH_LIBRARY(ns, "op.out", f)` registers a kernel for ExecuTorch's runtime, which passes the context and then the
    arguments of the operator's schema in their order, the `out` tensor last. Its type must be `Tensor&`. Nothing compares the
    function with the schema before a program runs.

    `WRAP_TO_ATEN(f, N)` makes a kernel for torch of a function without a context; `N` is the index of its first `out`
    argument, which has the type that the function returns. Otherwise it does not compile. The schema itself is compared by
    [REG501](REG501.md).

    Bad (an argument is missing):

    ```cpp kit/op_scale.cpp
    #include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>

    Tensor& scale_out(KernelRuntimeContext& ctx, const Tensor& x, Tensor& out) { return out; }

    EXECUTORCH_LIBRARY(kit, "scale.out", scale_out);
    ```

    ```cpp kit/op_scale_aot.cpp
    #include <torch/library.h>

    TORCH_LIBRARY(kit, m) { m.def("scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)"); }
    ```

    Bad (an index that is not that of `out`):

    ```cpp kit/op_scale_aot.cpp
    #include <torch/library.h>

    Tensor& scale_out_no_context(const Tensor& x, double factor, Tensor& out) { return out; }

    TORCH_LIBRARY(kit, m) { m.def("scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)"); }
    TORCH_LIBRARY_IMPL(kit, CompositeExplicitAutograd, m) { m.impl("scale.out", WRAP_TO_ATEN(scale_out_no_context, 1)); }
    ```

    Good:

    ```cpp kit/op_scale.cpp
    #include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>

    Tensor& scale_out(KernelRuntimeContext& ctx, const Tensor& x, double factor, Tensor& out) { return out; }

    EXECUTORCH_LIBRARY(kit, "scale.out", scale_out);
    ```

    ```cpp kit/op_scale_aot.cpp
    #include <torch/library.h>

    Tensor& scale_out_no_context(const Tensor& x, double factor, Tensor& out) { return out; }

    TORCH_LIBRARY(kit, m) { m.def("scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)"); }
    TORCH_LIBRARY_IMPL(kit, CompositeExplicitAutograd, m) { m.impl("scale.out", WRAP_TO_ATEN(scale_out_no_context, 2)); }
    ```
    """
    named: dict[str, list[Operator]] = {}
    for operator in tree.operators:
        for name in operator.names or ():
            named.setdefault(plain_name(name), []).append(operator)
    for item in tree.runtime_kernels:
        found = nearest(named.get(plain_name(item.name), ()), item.path)
        for signature in _signatures(item):
            yield from _of_runtime(item, signature, found[0] if len(found) == 1 else None)
    for item in tree.cpp_registrations:
        wrapped = WRAPPED.search(item.function)
        for signature in _signatures(item) if wrapped is not None and wrapped["out"] else ():
            yield from _of_wrapper(item, signature, int(wrapped["out"])) if wrapped is not None else ()


def _signatures(item: CppRegistration) -> tuple[CppSignature, ...]:
    kernels = item.registration.kernels
    return () if kernels is None or isinstance(kernels, Unresolved) else kernels


def _of_runtime(item: CppRegistration, signature: CppSignature, operator: Operator | None) -> Iterator[Diagnostic]:
    types = [one.type for one in signature.parameters]
    if not takes_context(signature):
        if types and spelling(types[0]) is None:
            return  # it may be an alias of the context
        message = f"{signature.shown} does not take the context first, which `{LIBRARY}` passes: this does not compile"
        yield _finding(item, signature, message)
        return
    if plain_type(types[-1]) is not None and spelling(types[-1]) != "Tensor&":
        message = f"{signature.shown} takes `{types[-1]}` last: `{LIBRARY}` does not compile without a `Tensor&` there"
        yield _finding(item, signature, message, len(types) - 1)
        return
    schema = operator.definition.schema if operator is not None else None
    if operator is None or not isinstance(schema, OperatorSchema) or operator.definition.errors:
        return
    definition = Related(operator.definition.written, f"the schema of `{operator.title}`")
    for message, index in runtime_misfits(signature, schema, operator.title):
        yield _finding(item, signature, message, index, definition)


def _of_wrapper(item: CppRegistration, signature: CppSignature, index: int) -> Iterator[Diagnostic]:
    wrapper = f"`WRAP_TO_ATEN({signature.name}, {index})`"
    if index >= len(signature.parameters):
        takes = count(len(signature.parameters), "argument")
        message = f"{wrapper} names no argument: {signature.shown} takes {takes}, counted from 0; this does not compile"
        yield _finding(item, signature, message)
        return
    returns, found = spelling(signature.returns), spelling(signature.parameters[index].type)
    if None in (returns, found) or returns == found or str(returns).startswith("tuple<"):
        return
    message = (
        f"{wrapper} names `{signature.parameters[index].name}` (`{signature.parameters[index].type}`),"
        f" and {signature.shown} returns `{signature.returns}`: this does not compile; give the index of the `out` argument"
    )
    yield _finding(item, signature, message, index)


def _finding(
    item: CppRegistration, signature: CppSignature, message: str, index: int | None = None, *related: Related
) -> Diagnostic:
    place = signature.places[index] if index is not None else signature.place
    here = Related(item.registration.place, f"registered here for `{plain_name(item.name)}`")
    return Diagnostic(message, place, related=(*related, here), ops=(plain_name(item.name),))

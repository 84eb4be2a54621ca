"""Compares the C++ functions that entries name as kernels with the functions that ExecuTorch's code generator calls."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.cpp_units import Declared
from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.source.text import Edit
from opschema_cli.suggestions import nearest
from opschema_rules.aten.findings import found
from opschema_rules.executorch.kernel_types import argument_type, arguments_of, returned_type
from opschema_rules.executorch.kernels import Candidate, KernelCheck, candidates
from opschema_rules.executorch.library_kernels import LibraryKernel
from opschema_rules.executorch.proofs import LINKED
from opschema_rules.torchlib.cpp_executorch import takes_context
from opschema_rules.torchlib.cpp_signature import signature_of


@rule("EXE401", "missing-runtime-kernel", needs=(CPP,))
def missing_runtime_kernel(check: KernelCheck) -> Iterator[Diagnostic]:
    """A kernel that no C++ file of the repository defines.

    The generated code calls this function, so linking fails. It is reported only if the repository defines most of the listed
    kernels in that namespace and the name appears only in declarations and calls. Any other mention may be a macro that defines
    it.

    Bad:

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: kit::add_out
    - op: abs.out
      kernels:
        - arg_meta: null
          kernel_name: kit::abs_out
    - op: neg.out
      kernels:
        - arg_meta: null
          kernel_name: kit::ngg_out
    ```

    ```cpp
    namespace kit {
    namespace native {
    Tensor& add_out(
        KernelRuntimeContext& ctx, const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) { return out; }
    Tensor& abs_out(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    Tensor& neg_out(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    }
    }
    ```

    Good (two of the kernels are defined by macros):

    ```yaml
    - op: abs.out
      kernels:
        - arg_meta: null
          kernel_name: kit::abs_out
    - op: neg.out
      kernels:
        - arg_meta: null
          kernel_name: kit::neg_out
    - op: sin.out
      kernels:
        - arg_meta: null
          kernel_name: kit::sin_out
    ```

    ```cpp
    #define UNARY(name) Tensor& name(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    #define NAMED(name) UNARY(name##_out)
    namespace kit {
    namespace native {
    Tensor& abs_out(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    UNARY(neg_out)
    NAMED(sin)
    }
    }
    ```
    """
    if check.missing and _other_owner(check) is None:
        message = f"no C++ file defines `{check.kernel.full}()`, the kernel of `{check.entry.name}`: linking fails"
        others = [
            Related(item.place, f"`{item.function.owner}::{check.kernel.symbol}()` is defined here")
            for item in check.elsewhere[:1]
        ]
        yield found(check.entry, check.kernel.name_node, message, check.entry.declared(), *others)


@rule("EXE402", "runtime-kernel-namespace", fixable="unsafe", needs=(CPP,), proof=LINKED)
def runtime_kernel_namespace(check: KernelCheck) -> Iterator[Diagnostic]:
    """A kernel that is not defined in the namespace that the generated code uses.

    The code generator appends `::native` to the namespace in `kernel_name`: the kernel `kit::add_out` is the function
    `kit::native::add_out()`. A function defined in the namespace as written, in a misspelled one, or in none, is not found.

    Bad:

    ```yaml
    - op: abs.out
      kernels:
        - arg_meta: null
          kernel_name: kit::native::abs_out
    ```

    ```cpp
    namespace kit {
    namespace native {
    Tensor& abs_out(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    }
    }
    ```

    Good (`torch::executor` belongs to another library; `kit` defines an unrelated function with the same name):

    ```yaml
    - op: abs.out
      kernels:
        - arg_meta: null
          kernel_name: torch::executor::abs_out
    ```

    ```cpp
    namespace kit {
    namespace native {
    Tensor& abs_out(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    }
    }
    ```
    """
    kernel, item = check.kernel, _other_owner(check)
    if item is None:
        return
    owner = item.function.owner
    named = owner.removesuffix("::native")
    edit = FileEdit(check.entry.file.path, Edit(kernel.name_node.span, f"{named}::{kernel.symbol}"))
    plain = owner.endswith("::native") and not kernel.name_node.style
    why = "the function may be in the wrong namespace instead"
    fix = Fix(f"write `{named}::{kernel.symbol}`", (edit,), "unsafe", why) if plain else None
    where = f"`{owner}`" if owner else "no namespace"
    yield found(
        check.entry,
        kernel.name_node,
        f"`kernel_name: {kernel.written}` refers to `{kernel.full}()` (the code generator appends `::native`), but"
        f" `{kernel.symbol}()` is defined in {where}: linking fails",
        Related(item.place, "it is defined here"),
        fix=fix,
    )


def _other_owner(check: KernelCheck) -> Declared | None:
    """Return the function that would be the kernel if its namespace were right; None if that is not certain."""
    if check.here or not check.certain:
        return None
    owners = {item.function.owner: item for item in check.elsewhere}
    written = check.kernel.written_namespace
    owner = written if written in owners else nearest(check.kernel.namespace, filter(None, owners), 0.85)
    if owner is not None:
        return owners[owner]
    plain = owners.get("")
    return plain if plain is not None and takes_context(signature_of(plain)) else None


@rule("EXE403", "runtime-kernel-signature", needs=(CPP,))
def runtime_kernel_signature(check: KernelCheck) -> Iterator[Diagnostic]:
    """A kernel whose signature differs from the one that the generated code calls.

    The code generator declares the function as `codegen/api/et_cpp.py` derives it from the schema: `KernelRuntimeContext&` first,
    then the arguments in schema order with the out arguments last. `int` and `SymInt` are `int64_t`, `Tensor?` is
    `const std::optional<Tensor>&`, `int[]` is `ArrayRef<int64_t>`, and arguments that are written to are `Tensor&`. Parameter types
    are part of the mangled name, so any difference is a link error. If there are several overloads, one of them must match.

    A template does not link either, nor does a function that is `static`, `extern "C"` or in a namespace without a name, or an
    `inline` function that nothing uses.

    A function that returns `void` instead of `Tensor&` links with GCC and Clang, and is not reported. A function that returns a
    tensor by value, or does not return a tuple where the schema returns several tensors, is reported: it links, but its calling
    convention differs, so it reads its arguments from the wrong registers.

    Bad (the wrong type of an argument, and a missing context):

    ```yaml
    - op: add.out
      kernels:
        - arg_meta: null
          kernel_name: kit::add_out
    - op: abs.out
      kernels:
        - arg_meta: null
          kernel_name: kit::abs_out
    ```

    ```cpp
    namespace kit {
    namespace native {
    Tensor& add_out(
        KernelRuntimeContext& ctx, const Tensor& a, const Tensor& b, double alpha, Tensor& out) { return out; }
    Tensor& abs_out(const Tensor& a, Tensor& out) { return out; }
    }
    }
    ```

    Bad (a tensor is returned by value):

    ```yaml
    - op: abs.out
      kernels:
        - arg_meta: null
          kernel_name: kit::abs_out
    ```

    ```cpp
    namespace kit {
    namespace native {
    Tensor abs_out(KernelRuntimeContext& ctx, const Tensor& a, Tensor& out) { return out; }
    }
    }
    ```

    Good (ExecuTorch's own type names, and an overload that is not a kernel):

    ```yaml
    - op: sum.IntList_out
      kernels:
        - arg_meta: null
          kernel_name: kit::sum_dim_out
    ```

    ```cpp
    namespace kit {
    namespace native {
    executorch::aten::Tensor& sum_dim_out(
        torch::executor::KernelRuntimeContext& ctx,
        const executorch::aten::Tensor& in,
        executorch::aten::optional<executorch::aten::ArrayRef<int64_t>> dim_list,
        bool keepdim,
        std::optional<executorch::aten::ScalarType> dtype,
        executorch::aten::Tensor& out) { return out; }
    Tensor& sum_dim_out(const Tensor& in, Tensor& out) { return out; }
    }
    }
    ```
    """
    alike = candidates(check)
    if not alike:
        return
    nearest_one = min(alike, key=_distance)
    message, at = _words(check, nearest_one)
    signature = nearest_one.signature
    place = signature.places[at] if at is not None else signature.place
    named = Related(check.entry.at(check.kernel.name_node), f"named as the kernel of `{check.entry.name}` here")
    yield Diagnostic(message, place, (check.entry.declared(), named), ops=(check.entry.name,))


def _distance(item: Candidate) -> tuple[object, ...]:
    """Sorts the candidate first whose differences from the call are the fewest."""
    return not item.context, item.count is not None, len(item.wrong), bool(item.hidden), item.template


def _words(check: KernelCheck, found: Candidate) -> tuple[str, int | None]:
    """Return the difference as text, and the index of the parameter that has it."""
    signature, schema = found.signature, check.entry.schema
    assert schema is not None
    arguments = arguments_of(schema)
    if not found.context:
        return f"{signature.shown} must take `KernelRuntimeContext&` as its first parameter; linking fails", None
    if found.count is not None:
        takes, wanted = count(found.count, "argument"), len(arguments)
        return f"{signature.shown} takes {takes} after the context, but the schema has {wanted}; linking fails", None
    if found.wrong:
        index = found.wrong[0]
        argument, parameter = arguments[index], signature.parameters[index + 1]
        meant = argument_type(argument)
        what = f"`{meant}` for `{argument.type} {argument.name}`"
        return f"{signature.shown} takes `{parameter.type}`, but must take {what}; linking fails", index + 1
    if found.template:
        return f"{signature.shown} is a template; the generated code calls a plain function: linking fails", None
    if found.hidden:
        return f"{signature.shown} {found.hidden}; linking fails", None
    expected = f"but the generated code expects `{returned_type(schema)}`; its arguments or result are misread"
    return f"{signature.shown} returns `{signature.returns}`, {expected}", None


@rule("EXE404", "library-kernel-signature", needs=(CPP,))
def library_kernel_signature(kernel: LibraryKernel) -> Iterator[Diagnostic]:
    """A function in `EXECUTORCH_LIBRARY` that does not match the entry of its operator.

    `EXECUTORCH_LIBRARY(ns, "op.out", f)` registers a kernel for the runtime without generated code. The runtime passes it the
    arguments of the model by position, as the schema in the operator list declares them. Operators that `torch.library` also
    defines are compared with that definition by `executorch-kernel` (REG508).

    Bad:

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    ```cpp
    namespace kit::native {
    Tensor& scale_out(KernelRuntimeContext& context, const Tensor& x, double factor, Tensor& out) { return out; }
    Tensor& scale_fast(KernelRuntimeContext& context, const Tensor& x, int64_t factor, Tensor& out) { return out; }
    }
    EXECUTORCH_LIBRARY(kit, "scale.out", kit::native::scale_fast);
    ```

    Good:

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    ```cpp
    namespace kit::native {
    Tensor& scale_out(KernelRuntimeContext& context, const Tensor& x, double factor, Tensor& out) { return out; }
    }
    EXECUTORCH_LIBRARY(kit, "scale.out", kit::native::scale_out);
    ```
    """
    entry, signature = kernel.entry, kernel.signature
    for message, at in kernel.misfits:
        place = signature.places[at] if at is not None else signature.place
        registered = Related(kernel.place, f"registered here for `{entry.name}`")
        yield Diagnostic(message, place, (entry.declared(), registered), ops=(entry.name,))

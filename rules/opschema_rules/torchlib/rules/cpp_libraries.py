"""C++ blocks of registrations: errors that torch rejects, and duplicate registrations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.preprocessor import exclusive
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.build_pairs import Compiled, linked_pairs
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import CppRegistration, Operator, Registration, Tree
from opschema_rules.torchlib.operators import plain_name
from opschema_rules.torchlib.rules.cpp_kernels import registered, signatures


@rule("REG503", "cpp-kernels-differ", needs=(CPP,))
def cpp_kernels_differ(operator: Operator) -> Iterator[Diagnostic]:
    """Two C++ kernels of one operator whose C++ types differ.

    Torch keeps the C++ type of the first kernel that is registered without boxing, and refuses another whose type is not exactly
    the same, although both fit the schema: `at::Tensor` is not `const at::Tensor&`, and `at::TensorList` is not
    `std::vector<at::Tensor>`. Kernels that take `SymInt` are compared only with each other.

    Bad:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale_cpu(const at::Tensor& x, double factor) { return x * factor; }
    at::Tensor scale_cuda(at::Tensor x, double factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("scale", &scale_cpu); }
    TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("scale", &scale_cuda); }
    ```

    Good:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale_cpu(const at::Tensor& x, double factor) { return x * factor; }
    at::Tensor scale_cuda(const at::Tensor& x, const double factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("scale", &scale_cpu); }
    TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("scale", &scale_cuda); }
    ```
    """
    first: dict[bool, tuple[Registration, CppSignature, tuple[str, ...]]] = {}
    for registration, signature in signatures(operator):
        types = signature.known_types
        if types is None or signature.stable or registration.conditional or not _is_alone(registration):
            continue
        other = first.setdefault(signature.takes_symint, (registration, signature, types))
        if other[2] != types and len(other[2]) == len(types):
            yield _unlike(operator, registration, signature, other[1])


def _is_alone(registration: Registration) -> bool:
    """Whether a registration has one function in every build."""
    return not isinstance(registration.kernels, Unresolved) and len(registration.kernels or ()) == 1


def _unlike(operator: Operator, registration: Registration, signature: CppSignature, other: CppSignature) -> Diagnostic:
    at = next(index for index, (one, two) in enumerate(zip(signature.types, other.types, strict=True)) if one != two)
    written = [*signature.parameter_types, signature.returns][at]
    before = [*other.parameter_types, other.returns][at]
    verb = "takes" if at < len(signature.parameters) else "returns"
    return Diagnostic(
        f"{signature.shown} {verb} `{written}` where {other.shown}, another kernel of `{operator.title}`, {verb}"
        f" `{before}`: torch rejects the one that is registered later",
        signature.places[at] if at < len(signature.parameters) else signature.place,
        related=(
            Related(other.place, f"the other kernel of `{operator.title}`"),
            registered(registration, operator.title),
        ),
        ops=(operator.title,),
    )


@rule("REG506", "cpp-registered-twice", needs=(CPP,))
def cpp_registered_twice(tree: Tree) -> Iterator[Diagnostic]:
    """Two C++ kernels for one operator and one dispatch key, in one library.

    Torch prints a warning, at most once in a process, and keeps the one that is registered last. In one file that is the last
    one, and a warning here. In two files it depends on the order in which they are linked, and is an error.

    Files are compared where the build always compiles them together: they are sources of one target in CMake, Bazel or Buck, or
    in one list of sources in `setup.py` or `pyproject.toml`. Alternatives of the build or of the preprocessor (`if(USE_CUDA)`,
    `#if`) are not reported, nor are files of different targets.

    Bad (in two files of one target):

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("scale", &scale); }
    ```

    ```cpp kit/fast.cpp
    #include <torch/library.h>

    at::Tensor scale_fast(const at::Tensor& x, double factor) { return x.mul(factor); }

    TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("scale", &scale_fast); }
    ```

    ```text kit/CMakeLists.txt
    add_library(kit SHARED ops.cpp fast.cpp)
    ```

    Bad (in one file):

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x * factor; }
    at::Tensor scale_fast(const at::Tensor& x, double factor) { return x.mul(factor); }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, CPU, m) {
      m.impl("scale", &scale);
      m.impl("scale", &scale_fast);
    }
    ```

    Good:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x * factor; }
    at::Tensor scale_fast(const at::Tensor& x, double factor) { return x.mul(factor); }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, CPU, m) {
    #ifdef KIT_FAST
      m.impl("scale", &scale_fast);
    #else
      m.impl("scale", &scale);
    #endif
    }
    ```
    """
    first: dict[tuple[str, str, frozenset[str]], list[CppRegistration]] = {}
    plain = [item for item in tree.cpp_registrations if not item.registration.conditional]
    for item in plain:
        keys = item.registration.keys
        if keys is not None:
            before = first.setdefault((item.registration.place.path, plain_name(item.name), keys), [])
            other = next((one for one in before if not exclusive(one.conditions, item.conditions)), None)
            before.append(item)
            if other is not None and other.registration.place != item.registration.place:
                yield _twice(item, other, "torch keeps the one that is registered last", Severity.WARNING)
    for item, other, target in linked_pairs(tree, _keyed(plain)):
        effect = f"both files are linked into `{target}`, in an order that decides which one torch keeps"
        yield _twice(item, other, effect, Severity.ERROR)


def _keyed(items: Iterable[CppRegistration]) -> Iterator[tuple[object, Compiled, CppRegistration]]:
    for item in items:
        registration = item.registration
        if registration.keys is not None:
            place = Compiled(registration.place.path, item.conditions)
            yield (plain_name(item.name), registration.keys), place, item


def _twice(item: CppRegistration, other: CppRegistration, effect: str, severity: Severity) -> Diagnostic:
    keys = item.registration.keys
    for_keys = f" for {quoted(sorted(keys))}" if keys else ""
    message = f"`{plain_name(item.name)}` has a kernel{for_keys} already; {effect}"
    related = (Related(other.registration.place, "the first one"),)
    return Diagnostic(
        message, item.registration.place, related=related, ops=(plain_name(item.name),), severity=severity
    )


@rule("REG507", "cpp-library", needs=(CPP,))
def cpp_library(tree: Tree) -> Iterator[Diagnostic]:
    """A block of C++ registrations that torch refuses, or that does not compile.

    The dispatch key of `TORCH_LIBRARY_IMPL` is a member of `c10::DispatchKey`. Such a block registers kernels and defines nothing.
    No block takes names of another namespace. A namespace has one `TORCH_LIBRARY`; of the others, those of one file are reported,
    and those of files that the build always compiles together ([REG506](REG506.md)).

    Bad:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, Cuda, m) { m.impl("scale", &scale); }
    ```

    Bad (another namespace):

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    TORCH_LIBRARY(kit, m) { m.def("tools::scale(Tensor x, float factor) -> Tensor"); }
    ```

    Good:

    ```cpp kit/ops.cpp
    #include <torch/library.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x * factor; }

    TORCH_LIBRARY(kit, m) { m.def("kit::scale(Tensor x, float factor) -> Tensor"); }
    TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("scale", &scale); }
    ```
    """
    for item in dict.fromkeys(tree.cpp_problems):
        related = (Related(item.other, "the first one"),) if item.other is not None else ()
        yield Diagnostic(item.message, item.place, related=related)

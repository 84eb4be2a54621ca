"""A backend's kernels against the operators of its YAML."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.yaml_edit import YamlEditError, insert_item, insert_key, set_value
from opschema_cli.suggestions import near_names
from opschema_rules.aten.cpp_types import CppSignature
from opschema_rules.aten.kernel_drift import differences, fits, is_same
from opschema_rules.aten.kernel_tree import Method
from opschema_rules.aten.kernels import Asked, BackendKernels, Missing, kernels_named, sides
from opschema_rules.aten.model import REFERENCE
from opschema_rules.aten.proofs import LINKED


@rule("ATN701", "kernel-missing", fixable="safe", needs=(CPP, REFERENCE), proof=LINKED)
def kernel_missing(kernels: BackendKernels) -> Iterator[Diagnostic]:
    """An operator in a backend's YAML whose kernel is not defined anywhere.

    torchgen declares the kernel as a method of the backend's class and registers it, so the backend does not link. The
    check of its `gen_backend_stubs --impl-path` looks into one file and counts lines with the kernel's name; comments and
    calls mislead it. This rule reads every C++ file of the tree, distinguishes overloads by their types, and ignores
    comments, declarations and code that the preprocessor drops (`#if 0`).

    A kernel that a macro may define is not reported, nor is anything if more than half of all kernels are not found: they
    are then generated, or in another tree. Operators of `full_codegen` need no kernel.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, square, add.Tensor]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    // at::Tensor XLANativeFunctions::square(const at::Tensor& self) {
    at::Tensor XLANativeFunctions::add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
      return XLANativeFunctions::square(self);
    }
    }
    ```

    Bad, as the kernel takes `c10::SymInt`, and the operator is not under `symint`:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, expand]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    at::Tensor XLANativeFunctions::expand_symint(const at::Tensor& self, c10::SymIntArrayRef size, bool implicit) {}
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, square]
    ```

    ```cpp kernels.cpp
    #define SAME(name) at::Tensor XLANativeFunctions::name(const at::Tensor& self) { return self; }
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    SAME(square)
    }
    ```
    """
    backend = kernels.backend
    for missing in kernels.missing:
        item = missing.asked.item
        related = () if missing.near is None else (missing.near.related(f"`{missing.near.name}` is defined here"),)
        fix = _listing(kernels, missing)
        yield Diagnostic(_missing(kernels, missing), backend.at(item.name_node), related, fix, ops=(item.name,))


def _is_symint(missing: Missing) -> bool:
    """Whether all that is amiss is that the kernel takes ``SymInt``."""
    return missing.near is not None and missing.near.name == f"{missing.asked.name}_symint"


def _listing(kernels: BackendKernels, missing: Missing) -> Fix | None:
    """Return a fix that lists an operator under ``symint``, if its kernel is written for that."""
    asked, near, backend = missing.asked, missing.near, kernels.backend
    signature = asked.operator.symint
    if near is None or signature is None or near.name != signature.name or not is_same(signature, near.written):
        return None
    name, node = asked.item.name, backend.get("symint")
    try:
        if node is None:
            edits = insert_key(backend.file, backend.node, "symint", [name])
        elif node.kind == "scalar":  # `symint:` without items
            edits = set_value(backend.file, node, [name])
        else:
            edits = insert_item(backend.file, node, len(node.items), name)
    except YamlEditError:
        return None
    return Fix(f"list `{name}` under `symint`", tuple(FileEdit(backend.path, edit) for edit in edits))


def _missing(kernels: BackendKernels, missing: Missing) -> str:
    asked, near = missing.asked, missing.near
    lacking = f"`{kernels.class_name}` defines no `{asked.name}`, the kernel of `{asked.item.name}`"
    if near is None:
        return (
            f"{lacking}; define `{_definition(kernels.class_name, asked.signature)}`, or take the operator off the list"
        )
    if _is_symint(missing):
        return f"{lacking}, but `{near.name}`; list the operator under `symint`, too"
    if asked.name == f"{near.name}_symint":
        takes = "" if is_same(asked.signature, near.written) else ", and have it take `c10::SymInt`"
        return (
            f"torchgen looks for `{kernels.class_name}::{asked.name}`, since `symint` lists `{asked.item.name}`; the class has"
            f" `{near.name}`: rename it{takes}"
        )
    return f"{lacking}; did you mean it by `{near.name}`?"


def _definition(owner: str, signature: CppSignature) -> str:
    parameters = ", ".join(f"{item.type} {item.name}" for item in signature.parameters)
    return f"{signature.returns} {owner}::{signature.name}({parameters})"


@rule("ATN702", "kernel-unlisted", needs=(CPP, REFERENCE))
def kernel_unlisted(kernels: BackendKernels) -> Iterator[Diagnostic]:
    """A kernel that no operator in the backend's YAML needs.

    torchgen declares the backend's class from the YAML, so a method that is not in it does not compile. Where the tree
    declares the method itself, nothing is reported; nor is a method that may be the kernel of an operator which is not
    known, or that is compiled conditionally.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    at::Tensor XLANativeFunctions::square(const at::Tensor& self) { return self; }
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, square]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    at::Tensor XLANativeFunctions::square(const at::Tensor& self) { return self; }
    }
    ```
    """
    for method in kernels.unlisted:
        related = kernels.backend.related(kernels.backend.node.items[0], "the backend's operators are listed here")
        yield Diagnostic(_unlisted(kernels, method), method.place, (related,))


def _unlisted(kernels: BackendKernels, method: Method) -> str:
    kernel = f"`{kernels.class_name}::{method.name}`"
    of_name = kernels.asked_by_name.get(method.name, [])
    if any(fits(item.signature, method.written) for item in of_name):
        return f"{kernel} is defined twice; remove one of them"
    if of_name:
        names = listed([item.item.name for item in of_name], "or")
        return f"{kernel} is not the kernel of {names}; {_what_to_do(kernels, method)}"
    return f"no operator of `{kernels.backend.path}` has the kernel {kernel}; {_what_to_do(kernels, method)}"


def _what_to_do(kernels: BackendKernels, method: Method) -> str:
    named = kernels_named(kernels.operators, method.name)
    fitting = sorted({item.name for item, signature in named if fits(signature, method.written)})
    if fitting:
        symint = ", and under `symint`," if method.name.endswith("_symint") else ","
        return f"list {listed(fitting, 'or')}{symint} or remove it"
    if named:
        return "remove it, or mend its arguments"
    close = near_names(method.name, kernels.operators.by_kernel, 1)
    return f"did you mean `{close[0]}`?" if close else "remove it"


@rule("ATN703", "kernel-drift", needs=(CPP, REFERENCE))
def kernel_drift(kernels: BackendKernels) -> Iterator[Diagnostic]:
    """A kernel whose arguments or returned value differ from those of its operator.

    The kernels of a backend outside of PyTorch's tree follow the dispatcher's convention: `Scalar` is `const at::Scalar &`,
    `Tensor(a!)` is `at::Tensor &`, `int[]` is `at::IntArrayRef`, and `SymInt` is `c10::SymInt` for operators under `symint` and
    `int64_t` for others. torchgen declares the kernel so, and another definition does not compile.

    Namespaces, typedefs and the names of parameters are ignored. Unknown types and kernels that are compiled conditionally are not
    checked. If it is not certain that the tree is built with the PyTorch that it is compared with, this is a warning, and types
    that other versions of torchgen generate are accepted, too.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [add.Tensor]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::add(const at::Tensor& self, const at::Tensor& other, at::Scalar alpha) { return self; }
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [add.Tensor]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    using at::Tensor;
    Tensor XLANativeFunctions::add(Tensor const& a, const Tensor& b, const c10::Scalar& factor) { return a; }
    }
    ```
    """
    severity = Severity.ERROR if kernels.certain else Severity.WARNING
    for asked, method in kernels.drifted:
        faults = list(differences(asked.signature, method.written, any_version=not kernels.certain))
        if faults:
            message = _drift(kernels, asked, method, [text for _, text in faults])
            place, related = method.at(faults[0][0]), sides(kernels, asked)
            yield Diagnostic(message, place, related, ops=(asked.item.name,), severity=severity)


def _drift(kernels: BackendKernels, asked: Asked, method: Method, faults: list[str]) -> str:
    reference = kernels.backend.reference
    origin = f" of {reference.origin}" if reference is not None else ""
    kernel = f"`{kernels.class_name}::{asked.name}` {'; '.join(faults)}"
    return f"{kernel}: `{asked.item.name}`{origin} asks for `{asked.signature}`{_symint(asked, method)}"


def _symint(asked: Asked, method: Method) -> str:
    """Advice for a kernel that takes SymInt, whose operator is not under ``symint``."""
    takes = any("SymInt" in item.type for item in method.written.parameters)
    written = asked.name.endswith("_symint")
    return (
        f"; list it under `symint`, and name the kernel `{asked.name}_symint`, if it is to take these"
        if takes and not written
        else ""
    )


@rule("ATN704", "kernel-generated", needs=(CPP, REFERENCE))
def kernel_generated(kernels: BackendKernels) -> Iterator[Diagnostic]:
    """A kernel of an operator under `full_codegen`, which torchgen defines as well.

    The class then has two definitions of one method. This happens when an operator moves from `supported` to
    `full_codegen`; remove its kernel. Generated files are not checked.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    full_codegen: [relu]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    full_codegen: [relu]
    supported: [square]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::square(const at::Tensor& self) { return self; }
    }
    ```
    """
    for asked, method in kernels.repeated:
        message = (
            f"`{kernels.class_name}::{asked.name}` is defined here, and torchgen defines it for `full_codegen`;"
            f" remove this one, or move `{asked.item.name}` to `supported`"
        )
        yield Diagnostic(message, method.place, sides(kernels, asked)[:1], ops=(asked.item.name,))


@rule("ATN705", "kernel-argument-order", severity="warning", needs=(CPP, REFERENCE))
def kernel_argument_order(kernels: BackendKernels) -> Iterator[Diagnostic]:
    """A kernel whose parameters have the names of the operator's arguments, but swapped.

    Their types are the same, so it compiles, and computes with the wrong ones. Parameters with other names are not checked.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [add.Tensor]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::add(const at::Tensor& other, const at::Tensor& self, const at::Scalar& alpha) { return self; }
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [add.Tensor]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::add(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha) { return a; }
    }
    ```
    """
    for asked, method in kernels.paired:
        names = [item.name for item in asked.signature.parameters]
        written = [item.name for item in method.written.parameters]
        moved = [at for at, name in enumerate(written) if name in names and name != names[at]]
        wanted, found = [names[at] for at in moved], [written[at] for at in moved]
        if not moved or sorted(wanted) != sorted(found):
            continue
        message = (
            f"`{kernels.class_name}::{asked.name}` takes {listed(found)} where `{asked.item.name}` has {listed(wanted)};"
            " name them in the operator's order"
        )
        place = method.at(method.written.parameters[moved[0]].span)
        yield Diagnostic(message, place, sides(kernels, asked), ops=(asked.item.name,))

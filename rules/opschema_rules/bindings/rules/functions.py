"""Bound C++ functions, and the names that they are bound to."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.preprocessor import exclusive
from opschema_cli.source.text import Edit
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.bindings.definitions import Lost
from opschema_rules.bindings.load import Tree
from opschema_rules.bindings.model import Alias, Binding, Module, Parameter
from opschema_rules.bindings.proofs import CALLED


@rule("BND201", "bound-twice", needs=(CPP,))
def bound_twice(tree: Tree) -> Iterator[Diagnostic]:
    """A name that is bound twice to functions with the same parameters.

    pybind11 and nanobind add the second function as an overload, and try overloads in order. The first one accepts every call, so
    the second one is never called. If both bindings name the same function, the rule gives a warning. Nothing is reported if a
    function of the tree may pass a call on to the next overload, by `py::reference_cast_error` or `nb::next_overload`.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x) { return x; }
    at::Tensor gelu(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("relu", &relu);
      m.def("relu", &gelu);
    }
    ```

    Good (overloads, and functions for different builds):

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x) { return x; }
    at::Tensor relu_slope(const at::Tensor& x, double slope) { return x; }
    at::Tensor fast(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("relu", &relu);
      m.def("relu", &relu_slope);
    #ifdef WITH_FAST
      m.def("gelu", &fast);
    #else
      m.def("gelu", &relu);
    #endif
    }
    ```
    """
    modules = (module for root in tree.modules for module in root.all())
    hidden = [(first, item) for module in modules for first, item in _hidden(module)]
    for first, item in hidden if hidden and not tree.passes_on else ():
        same = "the same function" if first.function == item.function else f"`{first.function}`"
        message = f"`{item.name}` is already bound to {same}, with the same parameters; this binding is never called"
        severity = Severity.WARNING if first.function == item.function else Severity.ERROR
        yield Diagnostic(message, item.place, (first.related,), ops=(item.qualified,), severity=severity)


def _hidden(module: Module) -> Iterator[tuple[Binding, Binding]]:
    """The bindings that are never called, each after the one that hides it; without names that are bound in other ways too."""
    others = module.names.union(alias.name for alias in module.aliases)
    earlier: dict[str, list[Binding]] = {}
    for item in (item for item in module.bindings if item.name not in others):
        first = next((other for other in earlier.get(item.name, ()) if _hides(other, item)), None)
        if first is not None:
            yield first, item
        earlier.setdefault(item.name, []).append(item)


def _hides(first: Binding, second: Binding) -> bool:
    """Whether every call that the second binding accepts goes to the first one."""
    if first.place == second.place:  # a helper that is reached twice
        return False
    if first.step.branch or second.step.branch or second.step.prepended:
        return False
    if first.signature is None or second.signature is None or first.parameters is None or second.parameters is None:
        return False
    if not set(first.conditions) <= set(second.conditions) or exclusive(first.conditions, second.conditions):
        return False
    one, other = first.signature.types[:-1], second.signature.types[:-1]
    if one != other or None in map(spelling, (*first.signature.parameter_types, *second.signature.parameter_types)):
        return False
    return all(map(_accepts, first.parameters, second.parameters))


def _accepts(one: Parameter, other: Parameter) -> bool:
    """Whether a parameter can be passed or left out in each way in which another one of its type can."""
    methods = [item.annotation.methods if item.annotation is not None else "" for item in (one, other)]
    named = one.name == other.name or other.kind == "posonly"
    left_out = one.default is not None or other.default is None
    return one.kind in ("normal", other.kind) and named and left_out and methods[0] == methods[1]


@rule("BND202", "unknown-alias-target", needs=(CPP,))
def unknown_alias_target(alias: Alias) -> Iterator[Diagnostic]:
    """An alias (`m.attr("a") = m.attr("b")`) of a name that is not bound, or is bound only later.

    `m.attr("b")` looks up the name while the module is imported, and raises `AttributeError` if it is not bound yet.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor gemm(const at::Tensor& a, const at::Tensor& b) { return a; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.attr("matmul") = m.attr("gemn");
      m.def("gemm", &gemm);
    }
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor gemm(const at::Tensor& a, const at::Tensor& b) { return a; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("gemm", &gemm);
      m.attr("matmul") = m.attr("gemm");
    }
    ```
    """
    if alias.earlier is None or alias.target in alias.earlier or alias.step.branch or alias.target.startswith("__"):
        return
    later = next((item for item in alias.module.bindings if item.name == alias.target), None)
    if later is not None:
        message = f"`{alias.target}` is bound only after this alias; move the alias below that binding"
        related: tuple[Related, ...] = (later.related,)
    else:
        near = nearest(alias.target, alias.module.known - {alias.name})
        message = f"`{alias.module.shown}` has no attribute `{alias.target}`{did_you_mean(near)}"
        related = ()
    name = f"{alias.module.shown}.{alias.name}"
    yield Diagnostic(message, Place(alias.path, alias.step.value_span), related, ops=(name,))


@rule("BND203", "undeclared-function", needs=(CPP,))
def undeclared_function(lost: Lost) -> Iterator[Diagnostic]:
    """A bound function that no C++ file of the tree declares.

    The extension does not compile. A name is reported only if most functions that the same file binds are found, no macro and no
    other C++ code mentions the name, and the tree contains all files that the file and its headers include, apart from those of
    torch, CUDA and the system.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x) { return x; }
    at::Tensor gelu(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("relu", &relu);
      m.def("gelu", &gelu);
      m.def("silu", &silu_forward);
    }
    ```

    Good (the declaration may be in a generated header, which is not in the tree):

    ```cpp
    #include <torch/extension.h>

    #include "generated_ops.h"

    at::Tensor relu(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("relu", &relu);
      m.def("silu", &silu_forward);
    }
    ```
    """
    binding, function = lost.binding, lost.function
    if function.declared is None:
        message = f"`{binding.name}` is bound to `{function.use.name}`, which no C++ file of the tree declares"
        yield Diagnostic(f"{message}{did_you_mean(function.near)}", binding.function_place, ops=(binding.qualified,))


@rule("BND204", "undefined-function", needs=(CPP,))
def undefined_function(lost: Lost) -> Iterator[Diagnostic]:
    """A bound function that is declared but not defined, or is defined only with other parameter types.

    The linker does not report undefined symbols of an extension; its import fails with `undefined symbol`. A definition with
    other parameter types is another overload and does not define the declared function. Functions that a macro or other C++ code
    mentions are not reported. If the tree defines none of the functions that the headers in a folder declare, these headers are
    taken to belong to another library.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x, int slope);
    at::Tensor gelu(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("relu", &relu);
      m.def("gelu", &gelu);
    }
    ```

    ```cpp kernels.cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x, int64_t slope) { return x; }
    ```

    Good (`torch::Tensor` is the same type as `at::Tensor`):

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x, int slope);

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu); }
    ```

    ```cpp kernels.cpp
    #include <torch/extension.h>

    torch::Tensor relu(torch::Tensor const& x, const int slope) { return x; }
    ```
    """
    binding, declared = lost.binding, lost.function.declared
    if declared is None:
        return
    here = Related(declared.place, "declared here")
    others = tuple(Related(item.place, "defined here with other parameter types") for item in lost.function.defined)
    name, defined = lost.function.use.name, lost.function.defined
    if not defined:
        message = f"`{name}` is declared but not defined; importing the extension fails"
    else:
        want = ", ".join(item.type for item in declared.function.parameters)
        have = ", ".join(item.type for item in defined[0].function.parameters)
        message = f"`{name}` is declared with `({want})` but defined with `({have})`; importing the extension fails"
    yield Diagnostic(message, binding.function_place, (here, *others), ops=(binding.qualified,))


@rule("BND205", "module-name", fixable="unsafe", proof=CALLED, needs=(CPP,))
def module_name(module: Module) -> Iterator[Diagnostic]:
    """A module whose name in C++ differs from the name that it is built under.

    To import `acme._C`, Python calls the function `PyInit__C` of the extension. The macro defines that function, under the name
    that it is given. If the names differ, the import fails (`dynamic module does not define module export function`). For
    extensions that `torch.utils.cpp_extension` builds, `TORCH_EXTENSION_NAME` is always right.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(fast_ops, m) { m.def("relu", &relu); }
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor relu(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(_C, m) { m.def("relu", &relu); }
    ```
    """
    built = module.built_as
    if built and module.parent is None and built.rpartition(".")[2] != module.written:
        own = built.rpartition(".")[2]
        message = f"the module is named `{module.written}` here but built as `{built}`; importing it fails"
        edit = FileEdit(module.path, Edit(module.name_span, own))
        fix = Fix(f"rename the module to `{own}`", (edit,), "unsafe", "the name in the build file may be wrong instead")
        yield Diagnostic(message, module.place, fix=fix)

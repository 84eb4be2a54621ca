"""Names and defaults of arguments in bindings, compared with the parameters of the C++ functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.schema.cpp_literals import of_cpp, refuses
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Edit
from opschema_rules.bindings.facts import Annotation
from opschema_rules.bindings.model import Binding, variadic
from opschema_rules.bindings.proofs import CALLED
from opschema_rules.torchlib.cpp_signature import CppSignature


def _declared(signature: CppSignature) -> Related:
    parameters = ", ".join(f"{item.type} {item.name}".strip() for item in signature.parameters)
    return Related(signature.place, f"{signature.shown} takes `({parameters})`")


@rule("BND101", "argument-count", needs=(CPP,))
def argument_count(binding: Binding) -> Iterator[Diagnostic]:
    """A binding whose number of named arguments differs from the number of C++ parameters.

    pybind11 and nanobind require one `py::arg` for each parameter, or none at all. Otherwise the extension does not compile
    (`Argument annotations do not match function arity`). Parameters of type `py::args` or `py::kwargs` need none.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor, bool inverse) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, py::arg("x"), py::arg("factor"));
    }
    ```

    Good (`py::call_guard` and the docstring are not arguments):

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }
    at::Tensor total(const std::vector<at::Tensor>& items, py::args rest) { return items[0]; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, "Scale a tensor", py::arg("x"), py::kw_only(), py::arg("factor"),
            py::call_guard<py::gil_scoped_release>());
      m.def("total", &total, py::arg("items"));
    }
    ```
    """
    named = binding.annotations
    if not named or binding.step.unread or isinstance(binding.found, Unresolved):
        return
    for signature in binding.found:
        plain = [item for item in signature.parameters if not variadic(item.type)]
        if len(named) not in (len(plain), len(signature.parameters)):
            message = (
                f"the binding of `{binding.name}` names {count(len(named), 'argument')}, but {signature.shown} "
                f"takes {len(plain)}; the extension does not compile"
            )
            yield Diagnostic(message, binding.place, (_declared(signature),), ops=(binding.qualified,))
            return


@rule("BND102", "argument-order", fixable="unsafe", proof=CALLED, needs=(CPP,))
def argument_order(binding: Binding) -> Iterator[Diagnostic]:
    """A binding whose `py::arg`s are in a different order than the C++ parameters.

    pybind11 and nanobind match `py::arg`s to parameters by position only. If two names are swapped, a call by keyword passes each
    value to the wrong parameter. A name that no parameter of the C++ function has is not reported.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor clamp(const at::Tensor& x, double low, double high) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("clamp", &clamp, py::arg("x"), py::arg("high"), py::arg("low"));
    }
    ```

    Good (a name that differs from the C++ parameter):

    ```cpp
    #include <torch/extension.h>

    at::Tensor clamp(const at::Tensor& self, double low, double high) { return self; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("clamp", &clamp, py::arg("x"), py::arg("low"), py::arg("high"));
    }
    ```
    """
    signature = binding.signature
    if binding.parameters is None or signature is None:
        return
    places = {item.name: index for index, item in enumerate(signature.parameters) if item.name}
    named = [item for item in binding.parameters if item.annotation is not None]
    index = {id(item): at for at, item in enumerate(binding.parameters)}
    wrong = [item for item in named if places.get(item.name, index[id(item)]) != index[id(item)]]
    # Names that are only shifted may mean other things: each must stand where another of them belongs.
    if not wrong or {places[item.name] for item in wrong} != {index[id(item)] for item in wrong}:
        return
    first, annotation = wrong[0], wrong[0].annotation
    meant = signature.parameters[index[id(first)]].name
    message = (
        f'`py::arg("{first.name}")` is in the position of the parameter `{meant}` of {signature.shown}; '
        f"a call by keyword passes `{first.name}` as `{meant}`"
    )
    place = binding.at(annotation.span) if annotation is not None else binding.place
    yield Diagnostic(
        message, place, (_declared(signature),), fix=_reordered(binding, signature), ops=(binding.qualified,)
    )


def _reordered(binding: Binding, signature: CppSignature) -> Fix | None:
    """The names in the order of the function, if no default is exchanged with them."""
    pairs = [
        (item.annotation, signature.parameters[index].name)
        for index, item in enumerate(binding.parameters or ())
        if item.annotation is not None and item.name in {one.name for one in signature.parameters}
    ]
    moved = [(item, name) for item, name in pairs if item.name != name]
    if not binding.exact or any(item.default is not None or not name for item, name in moved):
        return None
    edits = tuple(FileEdit(binding.path, Edit(item.span, f'"{name}"')) for item, name in moved)
    return Fix(
        "name the arguments as in the C++ function", edits, "unsafe", "callers may pass arguments by the current names"
    )


@rule("BND103", "argument-named-twice", needs=(CPP,))
def argument_named_twice(binding: Binding) -> Iterator[Diagnostic]:
    """A binding that gives two arguments the same name.

    Only one of them can be passed by keyword; the other must always be passed by position.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("add", &add, py::arg("x"), py::arg("x"));
    }
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("add", &add, py::arg("x"), py::arg("y"));
    }
    ```
    """
    seen: dict[str, Annotation] = {}
    for item in binding.annotations:
        if item.name and item.name in seen:
            other = Related(binding.at(seen[item.name].span), f"the other argument named `{item.name}`")
            message = f"two arguments of `{binding.name}` are named `{item.name}`"
            yield Diagnostic(message, binding.at(item.span), (other,), ops=(binding.qualified,))
        elif item.name:
            seen[item.name] = item


@rule("BND104", "refused-default", needs=(CPP,))
def refused_default(binding: Binding) -> Iterator[Diagnostic]:
    """A default that the type of the C++ parameter does not accept.

    The default is converted to a Python object when the module is imported, and back to C++ when a call omits the argument. If
    the type of the parameter does not accept it, each such call raises `TypeError`. For example, a tensor that is not
    `std::optional` does not accept `None`, and an integer does not accept a floating-point number.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, const at::Tensor& bias, int64_t groups) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, py::arg("x"), py::arg("bias") = py::none(), py::arg("groups") = 1.0);
    }
    ```

    Good (a floating-point parameter accepts an integer):

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, const std::optional<at::Tensor>& bias, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, py::arg("x"), py::arg("bias") = py::none(), py::arg("factor") = 1);
    }
    ```
    """
    for item in binding.parameters or ():
        value = of_cpp(item.default) if item.default is not None else None
        if value is not None and item.annotation is not None and refuses(item.type, value):
            message = (
                f"`{item.name}` has the type `{item.type}`, which does not accept the default `{value.text}`; "
                "calls that omit the argument raise `TypeError`"
            )
            related = Related(item.place, "the C++ parameter")
            yield Diagnostic(message, binding.at(item.annotation.span), (related,), ops=(binding.qualified,))


@rule("BND105", "argument-marker", needs=(CPP,))
def argument_marker(binding: Binding) -> Iterator[Diagnostic]:
    """A `py::kw_only` or `py::pos_only` that pybind11 does not accept.

    Both require that the binding names its arguments with `py::arg`. `py::pos_only()` must come before `py::kw_only()`, and each
    may be used only once. Otherwise the extension does not compile.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, py::kw_only());
    }
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, py::arg("x"), py::pos_only(), py::kw_only(), py::arg("factor"));
    }
    ```
    """
    markers = [item for item in binding.step.annotations if item.is_marker]
    if binding.step.unread or not markers:
        return
    problem = _marker_problem(markers, bool(binding.annotations), binding.module.library == "pybind11")
    if problem is not None:
        item, message = problem
        yield Diagnostic(message, binding.at(item.span), ops=(binding.qualified,))


def _marker_problem(markers: Sequence[Annotation], named: bool, pybind: bool) -> tuple[Annotation, str] | None:
    names = [item.name for item in markers]
    for item, name in zip(markers, names, strict=True):
        shown = "py::kw_only()" if name == "*" else "py::pos_only()"
        if names.count(name) > 1:
            return markers[len(names) - 1 - names[::-1].index(name)], f"`{shown}` is used twice"
        if pybind and not named:
            return item, f"`{shown}` requires `py::arg`s, but the binding has none; the extension does not compile"
    if names == ["*", "/"]:
        return markers[1], "`py::pos_only()` must come before `py::kw_only()`"
    return None

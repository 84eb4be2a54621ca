"""Stubs of extension modules."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.python import Param
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.bindings.model import Binding, Parameter
from opschema_rules.bindings.stubs import Stub, StubFunction


@rule("BND401", "stub-names", needs=(CPP,))
def stub_names(stub: Stub) -> Iterator[Diagnostic]:
    """A function in the stub that the module does not bind, or one that is missing from the stub.

    Type checkers and editors trust the stub. They accept calls of a function that the module does not bind, and reject correct
    calls of one that the stub lacks. A bound name that begins with `_`, or that some builds do not bind (`#ifdef`), may be missing
    from the stub. A function that only the stub has is not reported if the module may have further names, such as those of an
    unknown macro, or if the module binds nothing: it may be there only to load operators of `TORCH_LIBRARY`, which the stub then
    describes.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x) { return x; }
    at::Tensor shift(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale);
      m.def("shift", &shift);
    }
    ```

    ```python _C.pyi
    from torch import Tensor


    def scale(arg0: Tensor) -> Tensor: ...
    def shfit(arg0: Tensor) -> Tensor: ...
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale);
      m.def("_debug", &scale);
    }
    ```

    ```python _C.pyi
    from torch import Tensor


    def scale(arg0: Tensor) -> Tensor: ...
    ```
    """
    module = stub.module
    if module.closed and module.known:
        for function in stub.file.body.functions:
            if function.name not in module.known and not function.name.startswith("__"):
                near = nearest(function.name, module.known - stub.names)
                message = (
                    f"the stub declares `{function.name}()`, which `{module.shown}` does not bind{did_you_mean(near)}"
                )
                related = (Related(module.place, "the module is defined here"),)
                place = Place(stub.file.path, function.span)
                yield Diagnostic(message, place, related, ops=(f"{module.shown}.{function.name}",))
    if not stub.names.isdisjoint(("__getattr__", "*")):
        return
    for name, bindings in module.by_name.items():
        if name not in stub.names and not name.startswith("_") and not _may_be_left_out(bindings):
            message = f"`{name}` is bound, but missing from the stub `{stub.file.path}`"
            yield Diagnostic(message, bindings[0].place, ops=(bindings[0].qualified,))


def _may_be_left_out(bindings: list[Binding]) -> bool:
    """Whether some builds of a module may not bind a function."""
    around = [item.block.conditions if item.block is not None else () for item in bindings]
    own = [[one for one in item.conditions if one not in outer] for item, outer in zip(bindings, around, strict=True)]
    single = [item[0] for item in own if len(item) == 1]
    return [] not in own and not any(Condition(item.text, not item.holds) in single for item in single)


@rule("BND402", "stub-signature", needs=(CPP,))
def stub_signature(stub: StubFunction) -> Iterator[Diagnostic]:
    """A function in a stub whose parameters differ from those of the binding.

    The rule compares the number of parameters, their names and order, which of them have a default, and which are keyword-only.
    If the binding names no arguments, the stub may use any names, since calls can only pass them by position.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale, py::arg("x"), py::arg("factor") = 1.0); }
    ```

    ```python _C.pyi
    from torch import Tensor


    def scale(x: Tensor, factor: float) -> Tensor: ...
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }
    at::Tensor shift(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale, py::arg("x"), py::arg("factor") = 1.0);
      m.def("shift", &shift);
    }
    ```

    ```python _C.pyi
    from torch import Tensor


    def scale(x: Tensor, factor: float = ...) -> Tensor: ...
    def shift(self: Tensor, /) -> Tensor: ...
    ```
    """
    binding = stub.binding
    parameters = binding.parameters
    params = stub.function.params
    if parameters is None or any(not item.by_name for item in params):
        return
    message = _difference(params, parameters)
    if message:
        text = f"`{binding.name}()` in the stub {message}"
        yield Diagnostic(text, stub.place, (binding.related,), ops=(binding.qualified,))


def _difference(params: tuple[Param, ...], parameters: tuple[Parameter, ...]) -> str:
    if any(item.kind in ("vararg", "kwarg") for item in parameters):
        return ""
    if len(params) != len(parameters):
        return f"has {count(len(params), 'parameter')}, but the binding has {len(parameters)}"
    named = [item.name for item in parameters]
    if all(named) and [item.name for item in params] != named:
        return f"has the parameters {listed(item.name for item in params)}, but the binding names them {listed(named)}"
    for param, item in zip(params, parameters, strict=True):
        if (param.default is None) != (item.default is None):
            own, other = ("a", "none") if param.default is not None else ("no", "one")
            return f"has {own} default for `{param.name}`, but the binding has {other}"
        if (param.kind == "kwonly") != (item.kind == "kwonly") and item.name:
            does, other = ("makes", "does not") if param.kind == "kwonly" else ("does not make", "does")
            return f"{does} `{param.name}` keyword-only, but the binding {other}"
    return ""

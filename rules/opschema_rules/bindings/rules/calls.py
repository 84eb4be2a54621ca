"""Calls of bound functions in Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.extension_modules.uses import MissingName
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, excerpt, joined
from opschema_cli.schema.cpp_inference import unpacked_count
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.bindings.calls import BoundCall, Misfit
from opschema_rules.bindings.model import Binding, Parameter


def _found(call: BoundCall, misfit: Misfit, message: str) -> Diagnostic:
    place = call.use.body.at(misfit.expr) if misfit.expr is not None else call.use.place
    binding = misfit.binding
    return Diagnostic(message, place, (_bound(binding),), ops=(binding.qualified,))


def _bound(binding: Binding) -> Related:
    shown = ", ".join(_parameter(item) for item in binding.parameters or ())
    return Related(binding.place, f"bound here to `{binding.function}`, with the parameters `({shown})`")


def _parameter(item: Parameter) -> str:
    text = f"{item.type} {item.name or item.cpp_name}".strip()
    return text if item.default is None else f"{text} = {item.default}"


def _only(call: BoundCall, *kinds: str) -> Misfit | None:
    """The misfit of the overload that fits best, if it is of one of some kinds."""
    order = ("type", "twice", "keyword", "few", "many")
    best = min(call.misfits, key=lambda item: order.index(item.kind), default=None)
    return best if best is not None and best.kind in kinds else None


def _any_overload(call: BoundCall) -> str:
    return f"; none of the {count(len(call.misfits), 'overload')} accepts the call" if len(call.misfits) > 1 else ""


@rule("BND301", "call-arity", needs=(CPP,))
def call_arity(call: BoundCall) -> Iterator[Diagnostic]:
    """A call that passes too few or too many arguments to a bound function.

    The call raises `TypeError: incompatible function arguments`. A default of the C++ function does not apply to calls from
    Python; only `py::arg("x") = ...` does.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor = 1.0) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
    ```

    ```python
    import _C


    def scale(x):
        return _C.scale(x)
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale, py::arg("x"), py::arg("factor") = 1.0); }
    ```

    ```python
    import _C


    def scale(x, *args):
        return _C.scale(x), _C.scale(x, 2.0), _C.scale(*args)
    ```
    """
    misfit = _only(call, "few", "many")
    if misfit is None:
        return
    parameters = misfit.binding.parameters or ()
    if misfit.kind == "many":
        most = sum(item.kind in ("posonly", "normal") for item in parameters)
        message = (
            f"`{call.use.name}()` takes at most {count(most, 'positional argument')}, but {misfit.count} are passed"
        )
    else:
        names = joined([f"`{name}`" if " " not in name else name for name in misfit.names])
        message = f"`{call.use.name}()` is called without {names}"
        if misfit.parameter is not None and misfit.parameter.cpp_default:
            message += "; its default in C++ does not apply to calls from Python"
    yield _found(call, misfit, message + _any_overload(call))


@rule("BND302", "call-keyword", needs=(CPP,))
def call_keyword(call: BoundCall) -> Iterator[Diagnostic]:
    """A call that passes a keyword argument that the binding does not name.

    The call raises `TypeError`. The names of C++ parameters are not visible in Python; only `py::arg("x")` names an argument.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
    ```

    ```python
    import _C


    def scale(x):
        return _C.scale(x, factor=2.0)
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale, py::arg("x"), py::arg("factor")); }
    ```

    ```python
    import _C


    def scale(x, **options):
        return _C.scale(x, factor=2.0), _C.scale(x, **options)
    ```
    """
    misfit = _only(call, "keyword", "twice")
    if misfit is None:
        return
    name = misfit.names[0]
    named = [item.name for item in misfit.binding.parameters or () if item.kind in ("normal", "kwonly")]
    if misfit.kind == "twice":
        message = f"`{call.use.name}()` is passed `{name}` by position and by keyword"
    elif not named:
        message = f"`{call.use.name}()` is passed `{name}` by keyword, but the binding names no arguments"
    else:
        message = f"`{call.use.name}()` has no argument `{name}`{did_you_mean(nearest(name, named))}"
    yield _found(call, misfit, message + _any_overload(call))


@rule("BND303", "unbound-function", needs=(CPP,))
def unbound_function(missing: MissingName) -> Iterator[Diagnostic]:
    """A use of a name that the extension module does not bind.

    The use raises `AttributeError` or `ImportError`. Names that are bound under an `#ifdef` count as bound. Uses in `try` or under
    `hasattr` are not reported. Modules that may have further names, such as those of an unknown macro, are not checked.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
    ```

    ```python
    import _C


    def scale(x):
        return _C.scale_(x, 2.0)
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
    ```

    ```python
    import _C


    def scale(x):
        if hasattr(_C, "scale_"):
            return _C.scale_(x, 2.0)
        return _C.scale(x, 2.0)
    ```
    """
    module = missing.modules[0]
    near = nearest(missing.name, {name for item in missing.modules for name in item.known})
    message = f"`{module.shown}` has no attribute `{missing.name}`{did_you_mean(near)}"
    related = tuple(Related(item.place, "the module is defined here") for item in missing.modules)
    yield Diagnostic(message, missing.place, related, ops=(f"{module.shown}.{missing.name}",))


@rule("BND304", "call-literal", needs=(CPP,))
def call_literal(call: BoundCall) -> Iterator[Diagnostic]:
    """A call that passes a literal that the type of the C++ parameter does not accept.

    The call raises `TypeError`. An integer does not accept a floating-point number, a tensor that is not `std::optional` does not
    accept `None`, and a `std::tuple` accepts only a sequence of its length. Only literals are checked.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, const at::Tensor& bias, int64_t groups) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
    ```

    ```python
    import _C


    def scale(x):
        return _C.scale(x, None, 4)
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, const std::optional<at::Tensor>& bias, double factor, bool fast) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
    ```

    ```python
    import _C


    def scale(x):
        return _C.scale(x, None, 4, None)
    ```
    """
    misfit = _only(call, "type")
    if misfit is None or misfit.parameter is None or misfit.expr is None:
        return
    text = excerpt(call.use.text(misfit.expr), 40)
    name = f"`{misfit.parameter.name}`" if misfit.parameter.name else "a parameter"
    message = (
        f"`{call.use.name}()` is passed `{text}` for {name}, whose type `{misfit.parameter.type}` does not accept it"
    )
    yield _found(call, misfit, message + _any_overload(call))


@rule("BND305", "result-count", needs=(CPP,))
def result_count(call: BoundCall) -> Iterator[Diagnostic]:
    """An assignment that unpacks more or fewer values than the C++ function returns.

    pybind11 converts a `std::tuple` or `std::pair` to a tuple of the same length, and `void` to `None`, which cannot be unpacked.

    Bad:

    ```cpp
    #include <torch/extension.h>

    std::tuple<at::Tensor, at::Tensor> norm(const at::Tensor& x) { return {x, x}; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("norm", &norm); }
    ```

    ```python
    import _C


    def norm(x):
        y, mean, rstd = _C.norm(x)
        return y
    ```

    Good:

    ```cpp
    #include <torch/extension.h>

    std::tuple<at::Tensor, at::Tensor, at::Tensor> norm(const at::Tensor& x) { return {x, x, x}; }
    std::vector<at::Tensor> split(const at::Tensor& x) { return {x, x}; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("norm", &norm);
      m.def("split", &split);
    }
    ```

    ```python
    import _C


    def norm(x):
        y, *rest = _C.norm(x)
        a, b = _C.split(x)
        return y, a, b
    ```
    """
    signatures = (item.signature for item in call.bindings)
    counts = [unpacked_count(item.returns) if item is not None else None for item in signatures]
    if not call.use.unpacked or None in counts or any(_fits(call, item) for item in counts) or call.use.may_fail:
        return
    most = counts[0]
    values = "`None`" if most == 0 else count(most or 0, "value")
    message = f"`{call.use.name}()` returns {values}, but the assignment unpacks {call.use.unpacked}"
    yield Diagnostic(message, call.use.place, (_returns(call.bindings),), ops=(call.bindings[0].qualified,))


def _fits(call: BoundCall, values: int | None) -> bool:
    return values is not None and (values >= call.use.unpacked - 1 if call.use.starred else values == call.use.unpacked)


def _returns(bindings: Sequence[Binding]) -> Related:
    signature = bindings[0].signature
    if signature is None:
        return bindings[0].related
    return Related(signature.place, f"{signature.shown} returns `{' '.join(signature.returns.split())}`")

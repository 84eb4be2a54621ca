"""Faults of 44 kinds that are put into bindkit one at a time, and the rule that reports each; None where none can."""

from __future__ import annotations

from typing import NamedTuple

BINDINGS, OPS, NORM, ELEMENTWISE = "csrc/bindings.cpp", "csrc/ops.h", "csrc/norm.cpp", "csrc/elementwise.cpp"
PYTHON, INIT, STUB, SETUP, TESTS = (
    "bindkit/ops.py",
    "bindkit/__init__.py",
    "bindkit/_C.pyi",
    "setup.py",
    "tests/test_ops.py",
)


class Fault(NamedTuple):
    """A text of a file that is replaced once, and the code of the rule that reports it."""

    kind: str
    path: str
    before: str
    after: str
    code: str | None


FAULTS = [
    Fault("argument left out", BINDINGS, 'py::arg("x"), py::arg("sizes"), ', 'py::arg("x"), ', "BND101"),
    Fault("argument too many", BINDINGS, 'py::arg("dim") = 0', 'py::arg("dim") = 0, py::arg("out")', "BND101"),
    Fault("parameter added in C++ only", OPS, "int64_t dim);", "int64_t dim, bool copy);", "BND101"),
    Fault("arguments exchanged", NORM, 'py::arg("grad"), py::arg("x")', 'py::arg("x"), py::arg("grad")', "BND102"),
    Fault("parameters exchanged in C++", NORM, "const at::Tensor& grad, const at::Tensor& x,",
          "const at::Tensor& x, const at::Tensor& grad,", "BND102"),
    Fault("argument named twice", NORM, 'py::arg("x"), py::arg("rstd")', 'py::arg("x"), py::arg("x")', "BND103"),
    Fault("None for a number", BINDINGS, 'py::arg("factor") = 1.0', 'py::arg("factor") = py::none()', "BND104"),
    Fault("float for an integer", BINDINGS, 'py::arg("dim") = 0', 'py::arg("dim") = 0.5', "BND104"),
    Fault("number for a string", BINDINGS, 'py::arg("mode") = "nearest"', 'py::arg("mode") = 1', "BND104"),
    Fault("string for a bool", NORM, 'py::arg("keepdim") = true', 'py::arg("keepdim") = "true"', "BND104"),
    Fault("nullopt where C++ is not optional", OPS,
          "const std::optional<at::Tensor>& bias);", "const at::Tensor& bias);", "BND104"),
    Fault("kw_only twice", BINDINGS, "py::kw_only(),", "py::kw_only(), py::kw_only(),", "BND105"),
    Fault("pos_only after kw_only", BINDINGS,
          'py::arg("bias") = py::none()', 'py::arg("bias") = py::none(), py::pos_only()', "BND105"),
    Fault("kw_only without arguments", BINDINGS, '"scale_cuda", &scale_cuda', '"scale_cuda", &scale_cuda, py::kw_only()', "BND105"),
    Fault("name bound twice", NORM, '"norm_backward", &norm_backward, py::arg("grad"), py::arg("x"), py::arg("rstd")',
          '"norm", &norm, py::arg("x"), py::arg("eps") = 1e-5, py::arg("keepdim") = true', "BND201"),
    Fault("overload never reached", BINDINGS, '"numel", [](const at::Tensor& x) { return x.numel(); }',
          '"shift", [](const at::Tensor& x, double by) { return x - by; }', "BND201"),
    Fault("alias of an unknown name", BINDINGS, 'm.attr("scale")', 'm.attr("scaled")', "BND202"),
    Fault("alias before its target", BINDINGS, "  m.doc()", '  m.attr("mul") = m.attr("scale");\n  m.doc()', "BND202"),
    Fault("misspelt function", BINDINGS, "&round_to,", "&round_two,", "BND203"),
    Fault("function renamed in C++", OPS,
          "void scale_(at::Tensor& x, double factor);", "void scale_inplace(at::Tensor& x, double factor);", None),
    Fault("definition removed", ELEMENTWISE, "void scale_(at::Tensor& x, double factor) { x.mul_(factor); }\n", "", "BND204"),
    Fault("definition with other types", ELEMENTWISE,
          "const std::string& mode, int digits)", "const std::string& mode, int64_t digits)", "BND204"),
    Fault("declaration by value", OPS, "round_to(const at::Tensor& x,", "round_to(at::Tensor x,", "BND204"),
    Fault("name of the module", BINDINGS, "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)", "PYBIND11_MODULE(bindkit, m)", "BND205"),
    Fault("extension renamed", SETUP, "bindkit._C", "bindkit._ext", None),
    Fault("call without an argument", PYTHON, "_C.norm_backward(grad, x, rstd)", "_C.norm_backward(grad, x)", "BND301"),
    Fault("call with an argument too many", PYTHON, "_C.scale_(x, 0.5)", "_C.scale_(x, 0.5, None)", "BND301"),
    Fault("keyword-only by position", TESTS, "2.0, bias=x)", "2.0, x)", "BND301"),
    Fault("required argument added to the binding", BINDINGS, 'py::arg("mode") = "nearest", py::arg("digits") = 0',
          'py::arg("mode"), py::arg("digits")', "BND402"),
    Fault("default removed", NORM,
          'py::arg("eps") = 1e-6, py::arg("keepdim") = true', 'py::arg("eps"), py::arg("keepdim")', "BND301"),
    Fault("unknown keyword", PYTHON, "keepdim=True", "keep_dim=True", "BND302"),
    Fault("keyword of an argument that has no name", PYTHON, "_C.shift(x, by)", "_C.shift(x, by=by)", "BND302"),
    Fault("argument passed twice", PYTHON, "_C.fill_int(x, value=value)", "_C.fill_int(x, value, value=value)", "BND302"),
    Fault("argument by position and by keyword", PYTHON, "_C.fill_int(x, value=value)", "_C.fill_int(value, x=x)", "BND302"),
    Fault("unbound function", PYTHON, "_C.scale_(x, 0.5)", "_C.scale_inplace(x, 0.5)", "BND303"),
    Fault("unbound import", INIT, "import scale, split", "import scale, splits", "BND303"),
    Fault("binding removed", BINDINGS, "  BIND_FILL(int, int64_t);\n", "", "BND303"),
    Fault("binding renamed", NORM, '"norm_backward", &norm', '"norm_bwd", &norm', "BND303"),
    Fault("unbound name of a submodule", PYTHON, "_C.debug.threads()", "_C.debug.num_threads()", "BND303"),
    Fault("None for a tensor", PYTHON, "_C.norm_backward(grad, x, rstd)", "_C.norm_backward(grad, x, None)", "BND304"),
    Fault("string for a number", PYTHON, "_C.scale(x, 2.0)", '_C.scale(x, "2.0")', "BND304"),
    Fault("float in a list of integers", TESTS, "[1, 3]", "[1.5, 2.5]", "BND304"),
    Fault("too many results", PYTHON, "y, rstd = _C.norm", "y, mean, rstd = _C.norm", "BND305"),
    Fault("result in C++ added", NORM,
          "std::tuple<at::Tensor, at::Tensor> norm", "std::tuple<at::Tensor, at::Tensor, at::Tensor> norm", "BND305"),
    Fault("result of a function that returns none", PYTHON, "    _C.scale_(x, 0.5)\n", "    x, _ = _C.scale_(x, 0.5)\n", "BND305"),
    Fault("function of the stub renamed", STUB, "def numel(", "def nelement(", "BND401"),
    Fault("function missing from the stub", STUB, "def scale_(x: Tensor, factor: float) -> None: ...\n", "", "BND401"),
    Fault("parameter of the stub renamed", STUB, "sizes: list[int]", "lengths: list[int]", "BND402"),
    Fault("parameters of the stub exchanged", STUB, "grad: Tensor, x: Tensor", "x: Tensor, grad: Tensor", "BND402"),
    Fault("default only in the stub", STUB, "value: float)", "value: float = ...)", "BND402"),
    Fault("keyword-only only in the stub", STUB, "dim: int = ...", "*, dim: int = ...", "BND402"),
    Fault("default is another value", BINDINGS, 'py::arg("factor") = 1.0', 'py::arg("factor") = 2.0', None),
    Fault("wrong type in the stub", STUB, "value: int)", "value: str)", None),
    Fault("function of another name", BINDINGS, '"scale_", &scale_', '"scale_", &scale', "BND101"),
]  # fmt: skip

#include <torch/extension.h>

at::Tensor scale(const at::Tensor& x, double factor, const at::Tensor& bias) { return x * factor + bias; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale", &scale, py::arg("x"), py::arg("factor") = 1.0, py::arg("bias") = py::none());
}

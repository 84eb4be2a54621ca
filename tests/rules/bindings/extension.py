"""An extension for the CPU and a program that calls all of its functions; compiled by :func:`built_and_run` as torch would."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

CPP = r"""
#include <torch/extension.h>

at::Tensor scale(const at::Tensor& x, double factor, const std::optional<at::Tensor>& bias) {
  at::Tensor y = x * factor;
  return bias.has_value() ? y + *bias : y;
}

void scale_(at::Tensor& x, float factor) { x.mul_(factor); }

at::Tensor roll(at::Tensor x, int steps, bool flip) {
  at::Tensor y = at::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = x.numel();
  for (int64_t i = 0; i < n; ++i) to[flip ? n - 1 - i : i] = from[(i + steps) % n];
  return y;
}

void copy_into(at::Tensor out, const at::Tensor& x) {
  float* to = out.data_ptr<float>();
  const float* from = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i];
}

std::tuple<at::Tensor, at::Tensor> norm(const at::Tensor& x, float eps) {
  at::Tensor rstd = at::rsqrt(x.pow(2).mean(-1, true) + eps);
  return {x * rstd, rstd};
}

std::vector<at::Tensor> split(const at::Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  return at::split_with_sizes(x, sizes, dim);
}

at::Tensor total(const std::vector<at::Tensor>& items, const std::string& mode) {
  at::Tensor y = at::stack(items).sum(0);
  return mode == "mean" ? y / static_cast<int64_t>(items.size()) : y;
}

int count(const at::Tensor& x, std::optional<int> skip) { return static_cast<int>(x.numel()) - skip.value_or(0); }

at::Tensor window(const at::Tensor& x, std::pair<int64_t, int64_t> size) { return x.narrow(0, size.first, size.second); }

at::Tensor shift(const at::Tensor& x, const at::Tensor& by) { return x + by; }

at::Tensor shift(const at::Tensor& x, double by) { return x - by; }

at::Tensor half(const at::Tensor& x) { return x / 2; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("shift", py::overload_cast<const at::Tensor&, const at::Tensor&>(&shift), py::arg("x"), py::arg("by"));
  m.def("shift", static_cast<at::Tensor (*)(const at::Tensor&, double)>(&shift), py::arg("x"), py::arg("by"));
#ifdef NDEBUG
  m.def("half", &scale, py::arg("x"), py::arg("factor"), py::arg("bias"));
#else
  m.def("half", &half, py::arg("x"));
#endif
  auto inner = m.def_submodule("inner");
  inner.def("half", &half, py::arg("x"));
  m.def("scale", &scale, "Scale", py::arg("x"), py::arg("factor") = 2, py::kw_only(), py::arg("bias") = py::none());
  m.attr("multiply") = m.attr("scale");
  m.def("scale_", &scale_, py::arg("x"), py::arg("factor"));
  m.def("roll", &roll, py::arg("x"), py::arg("steps") = 1, py::arg("flip") = false);
  m.def("copy_into", &copy_into);
  m.def("norm", &norm, py::arg("x"), py::arg("eps") = 1e-6, py::call_guard<py::gil_scoped_release>());
  m.def("split", &split, py::arg("x"), py::arg("sizes"), py::arg("dim") = 0);
  m.def("total", &total, py::arg("items"), py::arg("mode") = "sum");
  m.def("count", &count, py::arg("x"), py::arg("skip") = std::nullopt);
  m.def("window", &window);  // a pair has no schema type
  m.def("twice", [](const at::Tensor& x) -> at::Tensor { return x + x; });
}
"""

PROGRAM = """\
import json

import torch

import ext
from ext import multiply, norm, split

x = torch.arange(6.0).reshape(2, 3)
out = torch.zeros(2, 3)
ext.copy_into(out, x)
y = x.clone()
ext.scale_(y, 0.5)
z = x.clone().requires_grad_()
ext.scale(z, bias=x).sum().backward()
parts = [
    ext.scale(x),
    ext.scale(x, factor=3.0, bias=x),
    y,
    out,
    ext.roll(x),
    ext.roll(x, steps=2, flip=True),
    *norm(x),
    *norm(x, eps=0.5),
    *split(x, [1, 2], dim=1),
    ext.total([x, x]),
    ext.total([x, x], mode="mean"),
    ext.window(x, (0, 1)),
    ext.twice(x),
    ext.shift(x, x),
    ext.shift(x, by=2.0),
    ext.shift(x, 1),
    multiply(x, 4.0),
    ext.half(x),
    ext.inner.half(x=x),
    z.grad,
]
print(json.dumps([[part.tolist() for part in parts], ext.count(x), ext.count(x, skip=2)]))
"""

SETUP = 'from torch.utils.cpp_extension import CppExtension\n\next = CppExtension("ext", ["ext.cpp"])\n'

FILES = {"setup.py": SETUP, "ext.cpp": CPP, "main.py": PROGRAM}


def built_and_run(files: Mapping[str, str], folder: Path) -> str:
    """The output of the program with the extension, compiled with the flags of ``torch.utils.cpp_extension``."""
    import torch
    from torch.utils.cpp_extension import include_paths

    folder.mkdir()
    for path, text in files.items():
        (folder / path).write_text(text)
    root = Path(torch.__file__).parent / "lib"
    includes = [f"-I{path}" for path in (*include_paths(), sysconfig.get_path("include"))]
    libraries = [f"-L{root}", f"-Wl,-rpath,{root}", "-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10"]
    command = ["g++", "-std=c++20", "-O0", "-w", "-fPIC", "-shared", "-DTORCH_EXTENSION_NAME=ext", *includes, "ext.cpp"]
    built = subprocess.run(
        [*command, "-o", "ext.so", *libraries], cwd=folder, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([sys.executable, "main.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout

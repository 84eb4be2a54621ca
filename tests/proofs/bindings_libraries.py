"""The libraries that proofs compile bindings with, and stand-ins for torch's types in each."""

from __future__ import annotations

import importlib.util
import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import msgspec

_REPORT = """\
inline double shown(const at::Tensor& x) { return x.value; }
template <typename T> double shown(const T& x) { return static_cast<double>(x); }
#define REPORT(name) std::printf("%s %g\\n", #name, shown(name)), std::fflush(stdout)
"""
_PYBIND11 = """\
#pragma once
#include <cstdio>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
namespace py = pybind11;
namespace at { struct Tensor { double value = 0; }; }
namespace pybind11::detail {
template <> struct type_caster<at::Tensor> {
  PYBIND11_TYPE_CASTER(at::Tensor, const_name("Tensor"));
  bool load(handle from, bool) { value.value = from.cast<double>(); return true; }
  static handle cast(const at::Tensor& from, return_value_policy, handle) { return float_(from.value).release(); }
};
}
"""
_NANOBIND = """\
#pragma once
#include <cstdio>
#include <nanobind/nanobind.h>
namespace nb = nanobind;
namespace at { struct Tensor { double value = 0; }; }
namespace nanobind::detail {
template <> struct type_caster<at::Tensor> {
  NB_TYPE_CASTER(at::Tensor, const_name("Tensor"))
  bool from_python(handle from, uint8_t, cleanup_list*) noexcept {
    value.value = PyFloat_AsDouble(from.ptr());
    return PyErr_Occurred() == nullptr;
  }
  static handle from_cpp(const at::Tensor& from, rv_policy, cleanup_list*) noexcept {
    return PyFloat_FromDouble(from.value);
  }
};
}
"""


class Library(msgspec.Struct, frozen=True):
    """A library: the text of ``torch/extension.h`` for it, and arguments of g++."""

    header: str
    arguments: tuple[str, ...]


def library(name: str) -> Library:
    """pybind11 as torch has it, or nanobind."""
    python = f"-I{sysconfig.get_path('include')}"
    if name == "pybind11":
        return Library(_PYBIND11 + _REPORT, (python, f"-I{_root('torch')}/include"))
    return Library(_NANOBIND + _REPORT, (python, *_nanobind_includes(), _nanobind_object()))


def has_nanobind() -> bool:
    """Whether nanobind is installed."""
    return importlib.util.find_spec("nanobind") is not None


def _root(package: str) -> str:
    spec = importlib.util.find_spec(package)
    roots = spec.submodule_search_locations if spec is not None else None
    return roots[0] if roots else "."


def _nanobind_includes() -> tuple[str, ...]:
    return f"-I{_root('nanobind')}/include", f"-I{_root('nanobind')}/ext/robin_map/include"


@cache
def _nanobind_object() -> str:
    """The part of nanobind that each module is linked with, compiled once for a process."""
    target = Path(tempfile.mkdtemp(prefix="nanobind-")) / "nanobind.o"
    command = ["g++", "-std=c++17", "-O0", "-w", "-fPIC", "-fno-strict-aliasing", "-c"]
    command += [f"-I{sysconfig.get_path('include')}", *_nanobind_includes()]
    subprocess.run([*command, f"{_root('nanobind')}/src/nb_combined.cpp", "-o", str(target)], check=True)
    return str(target)

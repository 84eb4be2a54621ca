"""Modules that Python gets from functions of its own, and lazily."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.bindings.pack import PACK

CPP = """#include <torch/extension.h>
at::Tensor f(const at::Tensor& x, int64_t n) { return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, py::arg("x"), py::arg("n")); }
"""
SETUP = 'from torch.utils.cpp_extension import CppExtension\next = CppExtension("kit._C", ["ops.cpp"])\n'

BY_NAME = """import importlib
import torch

if torch.__version__ != "parrots":

    def load_ext(name, funcs):
        ext = importlib.import_module("kit." + name)
        for fun in funcs:
            assert hasattr(ext, fun)
        return ext

else:

    def load_ext(name, funcs):
        return make(funcs)
"""
LAZY_FUNCTION = """def lazy(name):
    def call(*args, **kwargs):
        from ._backend import _C

        return getattr(_C, name)(*args, **kwargs)

    return call
"""
BACKEND = """_C = None
try:
    from kit import _C
except ImportError:
    _C = build()
"""
CACHED = """_module = None


def get():
    global _module
    if _module is None:
        from kit import _C

        _module = _C
    return _module
"""
LAZY_MODULE = """from .lazily import make

_get, __getattr__ = make(public_name="_OPS", prebuilt_module="kit._C")
"""
FILES = {
    "setup.py": SETUP,
    "ops.cpp": CPP,
    "kit/__init__.py": "",
    "kit/loader.py": BY_NAME,
    "kit/wrapper.py": LAZY_FUNCTION,
    "kit/_backend.py": BACKEND.replace("_C = build()", "_C = None"),
    "kit/cached.py": CACHED,
    "kit/lazy.py": LAZY_MODULE,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from .loader import load_ext\nm = load_ext('_C', ['f'])\nm.f(x)\nm.f(x, n=2)\n", ["BND301"]),
        ("from . import loader\nm = loader.load_ext('_C', ['f'])\nm.g(x)\n", ["BND303"]),
        ("from .loader import load_ext\nm = load_ext(NAME, ['f'])\nm.f(x)\n", []),
        ("from .loader import load_ext\nm = load_ext('_other', ['f'])\nm.f(x)\n", []),
        ("from .wrapper import lazy\nlazy('f')(x)\nlazy('f')(x, 2)\n", ["BND301"]),
        ("from .wrapper import lazy\nf = lazy('f')\nf(x, k=2)\n", ["BND302"]),
        ("from .wrapper import lazy\nlazy('g')(x)\n", ["BND303"]),
        ("from .wrapper import lazy\nlazy(f'{name}')(x)\n", []),
        ("from .cached import get\nget().f(x)\nget().f(x, 2)\n", ["BND301"]),
        ("from .cached import get\nget().g(x)\n", ["BND303"]),
        ("from . import lazy\nlazy._OPS.f(x)\nlazy._OPS.f(x, 2)\nlazy._OTHER.f(x)\n", ["BND301"]),
        ("from ._backend import _C\n_C.f(x)\n", ["BND301"]),
        ("def lazy(name):\n    return print\nlazy('f')(x)\n", []),
        ("import kit._C as m\ngetattr(m, 'f')(x)\n", ["BND301"]),
    ],
)
def test_loaders(text: str, expected: list[str]) -> None:
    assert lint_files(PACK, {**FILES, "kit/use.py": text}).codes() == expected


STRING = """import torch
from torch.utils.cpp_extension import load_inline

CODE = r'''
#include <torch/extension.h>
at::Tensor f(const at::Tensor& x, int64_t n) { return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, py::arg("x"), py::arg("n")); }
'''
module = load_inline("kit_inline", cpp_sources=[CODE])
"""


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("module.f(x, 1)\n", []),
        ("module.f(x)\nmodule.g(x)\nmodule.f(x, k=1)\n", ["BND301", "BND303", "BND302"]),
        ("other = load_inline('other', cpp_sources=OTHER)\nother.f(x)\n", []),
    ],
)
def test_a_module_in_a_string(calls: str, expected: list[str]) -> None:
    assert lint_files(PACK, {"use.py": f"{STRING}{calls}"}).codes() == expected


def test_bindings_in_a_string() -> None:
    text = STRING.replace(', py::arg("n"))', ")")
    assert lint_files(PACK, {"use.py": text}).codes() == ["BND101"]


UNUSED = """#include <torch/extension.h>
at::Tensor f(const at::Tensor& x) { return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("fa", &f);
  m.def("fb", &f);
  m.def("fc", &f);
  m.attr("fd") = m.attr("fc");
}
"""


@pytest.mark.parametrize(
    ("files", "unused"),
    [
        ({"use.py": "from kit import _C\n_C.fa(x)\n"}, ["fb", "fc"]),
        ({"use.py": "from kit import _C\n_C.fa(x)\n", "README.md": "Call `fb`.\n"}, ["fc"]),
        ({"use.py": "from kit import _C\n_C.fa(x)\n_C.fd(x)\n"}, ["fb"]),
        ({"use.py": "from kit import _C\n_C.fa(x)\nNAMES = ['fb', 'fc']\n"}, []),
        ({"use.py": "from kit import _C\n"}, []),
        ({}, []),
    ],
)
def test_unused_bindings(files: dict[str, str], unused: list[str]) -> None:
    texts = {"setup.py": SETUP, "ops.cpp": UNUSED, "kit/__init__.py": "", **files}
    found = lint_files(PACK, texts, ["BND306"]).outcome.diagnostics
    assert [item.message.partition("`")[2].partition("`")[0] for item in found] == unused
    assert "BND306" not in lint_files(PACK, texts).codes()


BUILD = """import glob
import os
from types import SimpleNamespace

import torch.utils.cpp_extension as jit

HERE = os.path.dirname(os.path.abspath(__file__))


def parameters():
    name = "kit_ops"
    sources = [os.path.join(HERE, "ops.cpp")] + glob.glob(os.path.join(HERE, "more", "*.cpp"))
    return SimpleNamespace(name=name, sources=sources)


def build():
    found = parameters()
    try:
        return jit.load(name=found.name, sources=found.sources, verbose=True)
    finally:
        print("built")
"""
USE = "import kit_ops\nkit_ops.f(x)\nkit_ops.g(x)\n"


@pytest.mark.parametrize(
    ("build", "use", "expected"),
    [
        (BUILD, USE, ["BND301", "BND303"]),
        (BUILD, 'import importlib\nops = importlib.import_module("kit_ops")\nops.f(x)\nops.f(x, n=1)\n', ["BND301"]),
        (BUILD.replace("return jit", "module = jit"), USE, ["BND301", "BND303"]),
        (BUILD.replace('name = "kit_ops"', "name = chosen()"), USE, []),
        (BUILD.replace('name = "kit_ops"', 'name = "other"'), USE, []),
        (BUILD.replace('name = "kit_ops"', 'name = "kit_ops" if on() else "kit_other"'), USE, []),
        (BUILD.replace('"ops.cpp"', '"other.cpp"'), USE, []),
        (BUILD.replace("import torch.utils.cpp_extension as jit", "from kit import jit  # cpp_extension"), USE, []),
        (
            BUILD + '\n\ndef again():\n    jit.load("kit_again", [os.path.join(HERE, "ops.cpp")])\n',
            USE + "import kit_again\n",
            [],
        ),
        (
            BUILD + '\n\ndef again():\n    jit.load("kit_again", [os.path.join(HERE, "ops.cpp")])\n',
            USE,
            ["BND301", "BND303"],
        ),
        (BUILD, "def f(kit_ops):\n    kit_ops.f(x)\n", []),
    ],
)
def test_a_module_that_is_imported_as_it_is_loaded(build: str, use: str, expected: list[str]) -> None:
    files = {"csrc/ops.cpp": CPP, "csrc/build.py": build, "kit/__init__.py": "", "kit/use.py": use}
    assert lint_files(PACK, files).codes() == expected

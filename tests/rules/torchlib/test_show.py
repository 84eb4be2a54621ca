"""``opschema show`` of an operator."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.pack import PACK
from tests.tables import show, shown

CODE = """\
import torch
@torch.library.custom_op("ns::foo", mutates_args=())
def foo(x: torch.Tensor, n: int = 3) -> torch.Tensor: ...
@foo.register_fake
def _(input): ...
"""


def test_schema_function_and_fake_side_by_side() -> None:
    found = shown(PACK, {"ops.py": CODE}, "ns::foo")
    assert found.title == "ns::foo(Tensor x, SymInt n=3) -> Tensor"
    assert found.parts == [
        ("custom_op", "ops.py:2"),
        ("kernel", "ops.py:2 foo (line 3)"),
        ("fake", "ops.py:4 _ (line 5)"),
    ]
    assert found.rows == [
        ("x", "Tensor x", "kernel: x: torch.Tensor", ""),
        ("", "", "fake: input", "named `input`"),
        ("n", "SymInt n=3", "kernel: n: int = 3", ""),
        ("", "", "fake: absent", ""),
    ]


def test_the_closest_names() -> None:
    assert show(PACK, {"ops.py": CODE}, "ns::fooo") == ["ns::foo"]


def test_settings_tell_the_version_and_what_is_not_known(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "torch>=2.4,<2.7\n",
        "kit/ops.py": 'import torch\n\ntorch.library.define("kit::f", "(Tensor x) -> Tensor")\n'
        "torch.library.define(NAMES[0], SCHEMAS[0])\ntorch.library.define(NAMES[1], SCHEMAS[1])\n",
    }
    project = Project(Workspace(tmp_path, files))
    (described,) = PACK.describe(project, PACK.options())
    assert [(item.name, item.value) for item in described.facts] == [
        ("torch", "2.6"),
        ("operators", "1"),
        ("unresolved", "kit/ops.py:4"),
        ("unresolved", "kit/ops.py:5"),
    ]


FAKES = """\
import torch
from torch import Tensor
from elsewhere import run


@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor) -> Tensor:
    return x.sum(-1)


@f.register_fake
def _(x):
    return x.new_empty(x.shape[:-1])


@torch.library.custom_op("kit::g", mutates_args=())
def g(x: Tensor) -> Tensor:
    return run(x)


@g.register_fake
def _(x):
    return x.new_empty(x.shape)
"""


def test_settings_count_the_fakes_that_are_compared(tmp_path: Path) -> None:
    project = Project(Workspace(tmp_path, {"kit/ops.py": FAKES}))
    (described,) = PACK.describe(project, PACK.options())
    facts = [(item.name, item.value, item.note) for item in described.facts[2:]]
    assert facts[0][:2] == ("fakes", "1 of 2")
    assert facts[1:] == [("not compared", "kit/ops.py:21", "the kernel: the result of `elsewhere.run`")]


BACKEND = """\
at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out);
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add.out", TORCH_FN(add_out)); }
"""
NATIVE = """\
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: add_out
"""


def test_a_kernel_of_an_operator_of_torch() -> None:
    files = {"backend.cpp": BACKEND, "aten/src/ATen/native/native_functions.yaml": NATIVE}
    found = shown(PACK, files, "aten::add.out")
    assert found.title == "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    assert found.parts[-1] == ("kernel", "backend.cpp:2 PrivateUse1: TORCH_FN(add_out)")
    assert found.rows[-2:] == [
        ("alpha", "Scalar alpha=1", "kernel PrivateUse1: absent", ""),
        ("out", "Tensor(a!) out", "kernel PrivateUse1: at::Tensor& out", ""),
    ]


def test_kernels_in_cpp() -> None:
    code = """\
#include <torch/library.h>
at::Tensor foo(const at::Tensor& x, int64_t n) { return x; }
TORCH_LIBRARY(ns, m) { m.def("foo(Tensor x, int n=3) -> Tensor"); }
TORCH_LIBRARY_IMPL(ns, CPU, m) { m.impl("foo", foo); }
"""
    found = shown(PACK, {"ops.cpp": code}, "ns::foo")
    assert found.title == "ns::foo(Tensor x, int n=3) -> Tensor"
    assert [row[2] for row in found.rows] == ["kernel CPU: const at::Tensor& x", "kernel CPU: int64_t n"]

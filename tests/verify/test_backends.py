"""Kernels for ``PrivateUse1`` against the CPU's: a backend in C++ whose device has the memory of the CPU, compiled once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from opschema_cli.main import run as opschema

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or not os.environ.get("OPSCHEMA_SLOW"), reason="compiles with the headers of torch"
)

DEVICE = r"""
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>

namespace {

using at::Tensor;
constexpr auto kDevice = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes ? std::malloc(bytes) : nullptr;
    return {data, data, &std::free, c10::Device(kDevice, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};
Memory memory;
REGISTER_ALLOCATOR(kDevice, &memory);

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice; }
  c10::Device exchangeDevice(c10::Device device) const override { return device; }
  c10::Device getDevice() const override { return {kDevice, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
};
const bool registered = (at::RegisterPrivateUse1HooksInterface(new Hooks()), true);

using Size = c10::IntArrayRef;
using Type = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pinned = std::optional<bool>;

Tensor empty(Size size, Type type, Layout, Device, Pinned, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, kKeys, c10::dtype_or_default(type), format);
}
Tensor empty_strided(Size size, Size stride, Type type, Layout, Device, Pinned) {
  return at::detail::empty_strided_generic(size, stride, &memory, kKeys, c10::dtype_or_default(type));
}

/// The same memory as a tensor of the CPU.
Tensor host(const Tensor& x) {
  return at::for_blob(x.data_ptr(), x.sizes()).strides(x.strides()).options(x.options().device(at::kCPU)).make_tensor();
}
Tensor copy_from(const Tensor& self, const Tensor& to, bool) {
  host(to).copy_(host(self));
  return to;
}
Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  at::native::resize_(to, self.sizes(), std::nullopt);
  return copy_from(self, to, false);
}
Tensor on_device(const Tensor& x) {
  Tensor y = at::empty(x.sizes(), x.options().device(kDevice));
  host(y).copy_(x);
  return y;
}
"""

KERNELS = r"""
Tensor mul(const Tensor& self, const Tensor& other) { return on_device(at::mul(host(self), host(other))); }

Tensor neg(const Tensor& self) {  // wrong: the last element of an odd number is left out
  Tensor y = at::neg(host(self)).contiguous();
  if (y.numel() % 2) y.view({-1})[-1].zero_();
  return on_device(y);
}

Tensor& abs_(Tensor& self) {  // wrong: strides are ignored
  Tensor all = at::for_blob(self.data_ptr(), {self.numel()}).options(self.options().device(at::kCPU)).make_tensor();
  all.abs_();
  return self;
}

Tensor& relu_(Tensor& self) {
  host(self).relu_();
  return self;
}

Tensor scale(const Tensor& x, double factor) { return at::mul(x, factor); }
Tensor scale_there(const Tensor& x, double factor) { return on_device(at::mul(host(x), factor)); }
Tensor shift_there(const Tensor& x, double factor) { return on_device(at::mul(host(x), factor * 1.01)); }

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("resize_", &at::native::resize_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("mul.Tensor", &mul);
  m.impl("neg", &neg);
  m.impl("abs_", &abs_);
  m.impl("relu_", &relu_);
  m.impl("random_", torch::CppFunction::makeFromBoxedFunction<&fallback>());
  m.impl("uniform_", torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY(kitdev, m) {
  m.def("scale(Tensor x, float factor) -> Tensor");
  m.def("shift(Tensor x, float factor) -> Tensor");
}
TORCH_LIBRARY_IMPL(kitdev, CPU, m) {
  m.impl("scale", &scale);
  m.impl("shift", &scale);
}
TORCH_LIBRARY_IMPL(kitdev, PrivateUse1, m) {
  m.impl("scale", &scale_there);
  m.impl("shift", &shift_there);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
"""

PACKAGE = """
import types
from pathlib import Path

import torch

torch.ops.load_library(str(Path(__file__).parent / "_C.so"))
torch.utils.rename_privateuse1_backend("kitdev")
torch._register_device_module("kitdev", types.SimpleNamespace(is_available=lambda: True, device_count=lambda: 1))


@torch.library.register_fake("kitdev::scale")
def _(x, factor):
    return torch.empty_like(x)


@torch.library.register_fake("kitdev::shift")
def _(x, factor):
    return torch.empty_like(x)
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a built backend."""
    root = tmp_path_factory.mktemp("backend")
    (root / "kitdev/csrc").mkdir(parents=True)
    (root / "kitdev/__init__.py").write_text(PACKAGE)
    (root / "kitdev/csrc/kernels.cpp").write_text(DEVICE + KERNELS)
    (root / "opschema.toml").write_text('[verify]\nimports = ["kitdev"]\n')
    installed = Path(torch.__file__).parent
    include = [f"-I{installed / 'include'}", f"-I{installed / 'include/torch/csrc/api/include'}"]
    linked = [f"-L{installed / 'lib'}", f"-Wl,-rpath,{installed / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    flags = ["-std=c++20", "-O0", "-fPIC", "-shared", *include]
    subprocess.run(
        ["g++", *flags, "kitdev/csrc/kernels.cpp", *linked, "-o", "kitdev/_C.so"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    return root


RIGHT = ("aten::mul.Tensor", "aten::relu_", "kitdev::scale@PrivateUse1")
WRONG = {
    "aten::neg": "call-1-float32-odd-s0",
    "aten::abs_": "call-1-float32-row-strided-s0",
    "kitdev::shift@PrivateUse1": "call-1-float32-row-s0",
}


def test_wrong_kernels_are_found_and_right_ones_pass(
    backend: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(backend)
    assert opschema(["verify", "--device", "cpu", "--cells", "6", "--output-format", "json"]) == 1
    verdicts: dict[str, dict[str, str]] = {}
    for cell in json.loads(capsys.readouterr().out)["cells"]:
        name = cell["id"].removeprefix(cell["op"]).strip("[]")
        verdicts.setdefault(cell["op"], {})[name] = cell["verdict"]
    assert {op: set(verdicts[op].values()) for op in RIGHT} == {op: {"within-tolerance"} for op in RIGHT}
    assert {op: verdicts[op][name] for op, name in WRONG.items()} == dict.fromkeys(WRONG, "regression")
    assert verdicts["aten::neg"]["call-1-float32-row-s0"] == "within-tolerance"
    assert {"kitdev::scale", "kitdev::shift"} < verdicts.keys()
    # Other random numbers are no fault, and `from` is the name of an argument.
    for op in ("aten::random_", "aten::uniform_"):
        assert set(verdicts[op].values()) == {"not-checked"}
    for op in ("empty.memory_format", "empty_strided", "as_strided", "resize_", "_copy_from", "_copy_from_and_resize"):
        assert verdicts[f"aten::{op}"] == {"": "not-checked"}


def test_the_kernel_of_the_backend_can_be_named(
    backend: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(backend)
    asked = ["verify", "scale@PrivateUse1", "--before", str(backend), "--device", "cpu", "--cells", "3"]
    assert opschema([*asked, "--output-format", "json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {(cell["op"], cell["verdict"]) for cell in cells} == {("kitdev::scale@PrivateUse1", "unchanged")}

"""``opschema init --backend``: a backend from nothing that is clean, that torch builds and loads, and whose faults are found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.kernel_bodies import with_bodies
from opschema_rules.aten.native_table import native_text
from opschema_rules.aten.pack import PACK
from opschema_rules.aten.scaffold import scaffold
from opschema_rules.torchlib.pack import PACK as TORCHLIB
from tests.command import Here

SLOW = bool(os.environ.get("OPSCHEMA_SLOW"))

NAMES = (
    *("empty.memory_format", "empty_strided", "as_strided", "view", "resize_", "_copy_from", "_copy_from_and_resize"),
    *("add.Tensor", "mul.Tensor"),
)
NATIVE = "".join(
    entry
    for entry in re.split(r"(?m)^(?=- func: )", native_text((2, 13)))
    if entry.removeprefix("- func: ").partition("(")[0] in NAMES
)
"""These operators of torch 2.13 alone, which are read in no time."""


def lint(change: tuple[str, str, str] | None = None) -> set[str]:
    """The codes of findings in a new backend, after a change of one file."""
    files, _ = scaffold("PrivateUse1", "mydevice")
    if change is not None:
        path, old, new = change
        assert files[path].count(old) >= 1
        files[path] = files[path].replace(old, new, 1)
    found = lint_files([PACK, TORCHLIB], {**files, "native_functions.yaml": NATIVE}).diagnostics
    return {item.code for item in found if item.place.path != "native_functions.yaml"}


def test_a_new_backend_is_clean() -> None:
    assert lint() == set()


YAML, KERNELS, DEVICE = "csrc/mydevice.yaml", "csrc/kernels.cpp", "csrc/device.cpp"


@pytest.mark.parametrize(
    ("path", "old", "new", "code"),
    [
        (YAML, "- add.Tensor", "- add.Tensr", "ATN612"),
        (YAML, "- add.Tensor", "- add.Tensor\n  - add.Tensor", "ATN613"),
        (YAML, "supported:", "supportd:", "ATN602"),
        (YAML, "backend: PrivateUse1 ", "backend: PrivatUse1 ", "ATN607"),
        (YAML, "cpp_namespace: mydevice ", "cpp_namespace: yourdevice ", "ATN707"),
        (YAML, "supported:", "symint:\n  - empty_strided\nsupported:", "ATN701"),
        (KERNELS, "PrivateUse1NativeFunctions::add(", "PrivateUse1NativeFunctions::ad(", "ATN701"),
        (KERNELS, ", const at::Scalar& alpha", "", "ATN703"),
        (KERNELS, "const at::Scalar& alpha", "double alpha", "ATN703"),
        (KERNELS, "at::Tensor PrivateUse1NativeFunctions::add(", "at::Tensor& PrivateUse1NativeFunctions::add(", "ATN703"),
        (KERNELS, "}  // namespace mydevice", "at::Tensor PrivateUse1NativeFunctions::mul(const at::Tensor& self, const at::Tensor&"
        " other) { return self; }\n}", "ATN702"),
        (DEVICE, "TORCH_LIBRARY_IMPL(_, PrivateUse1, m)", "TORCH_LIBRARY_IMPL(_, PrivatUse1, m)", "REG507"),
    ],
)  # fmt: skip
def test_each_fault_is_found(path: str, old: str, new: str, code: str) -> None:
    assert code in lint((path, old, new))


def test_bodies_of_missing_kernels_are_written_behind_the_others() -> None:
    files, _ = scaffold("PrivateUse1", "mydevice")
    files[YAML] += "  - mul.Tensor\n"
    project = Project(Workspace(Path("/nowhere"), {**files, "native_functions.yaml": NATIVE}))
    text = with_bodies(project, AtenOptions(), YAML, KERNELS)
    assert (
        text
        == files[KERNELS].rstrip()
        + """

#include <c10/util/Exception.h>

namespace mydevice {

at::Tensor PrivateUse1NativeFunctions::mul(const at::Tensor & self, const at::Tensor & other) {
  C10_THROW_ERROR(NotImplementedError, "mul.Tensor is not implemented");
}

}  // namespace mydevice
"""
    )
    own = Project(Workspace(Path("/nowhere"), {**files, KERNELS: text, "native_functions.yaml": NATIVE}))
    assert with_bodies(own, AtenOptions(), YAML, KERNELS) is None
    new = with_bodies(project, AtenOptions(), YAML, "csrc/more.cpp")
    assert new is not None
    assert new.startswith('#include "PrivateUse1NativeFunctions.h"\n')


def test_no_body_is_written_for_what_a_macro_defines() -> None:
    files, _ = scaffold("PrivateUse1", "mydevice")
    files[YAML] += "  - mul.Tensor\n  - relu\n"
    files[KERNELS] += (
        "#define SAME(op) at::Tensor PrivateUse1NativeFunctions::op(const at::Tensor& self) { return self; }\n"
        "namespace mydevice {\nSAME(relu)\n}\n"
    )
    project = Project(Workspace(Path("/nowhere"), {**files, "native_functions.yaml": NATIVE}))
    text = with_bodies(project, AtenOptions(), YAML, KERNELS)
    assert text is not None
    assert "::mul(" in text
    assert "::relu(" not in text


def test_bodies_have_the_line_ends_of_their_file_and_the_header_that_torchgen_writes() -> None:
    files, _ = scaffold("PrivateUse1", "mydevice")
    files[YAML] += "  - mul.Tensor\nclass_name: Kernels\n"
    files[KERNELS] = files[KERNELS].replace("PrivateUse1NativeFunctions::", "Kernels::").replace("\n", "\r\n")
    project = Project(Workspace(Path("/nowhere"), {**files, "native_functions.yaml": NATIVE}))
    text = with_bodies(project, AtenOptions(), YAML, KERNELS)
    assert text is not None
    assert text.count("\n") == text.count("\r\n")
    new = with_bodies(project, AtenOptions(), YAML, "csrc/more.cpp")
    assert new is not None
    assert new.startswith('#include "PrivateUse1NativeFunctions.h"\n')


@pytest.mark.parametrize(
    ("key", "name", "reason"),
    [
        ("XPU", "mydevice", "has the dispatch key `PrivateUse1`"),
        ("PrivateUse1", "tile", "torch.tile is a function"),
        ("PrivateUse1", "cuda", "it is taken"),
        ("PrivateUse1", "My-Device", "a word in lower case"),
    ],
)
def test_names_that_torch_cannot_give(key: str, name: str, reason: str) -> None:
    with pytest.raises(OpschemaError, match=reason):
        scaffold(key, name)


def test_the_files_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Here(tmp_path, tmp_path / "cache", monkeypatch, capsys)
    done = here("init", "--backend", "PrivateUse1", "--name", "npu2")
    assert done.code == 0
    assert "opschema stubs csrc/npu2.yaml --output-dir csrc --apply" in done.out
    assert (tmp_path / "npu2/__init__.py").read_text().startswith('"""The device `npu2` for PyTorch')
    again = here("init", "--backend", "PrivateUse1", "--name", "npu2")
    assert (again.code, again.err) == (2, "opschema: csrc/npu2.yaml is there already; use an empty folder\n")


@pytest.mark.skipif(not SLOW, reason="compiles a C++ extension")
def test_torch_builds_and_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    here = Here(tmp_path, tmp_path / "cache", monkeypatch, capsys)
    assert here("init", "--backend", "PrivateUse1").code == 0
    assert here("stubs", "csrc/mydevice.yaml", "--output-dir", "csrc", "--apply").code == 0
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], check=True, cwd=tmp_path)
    program = """
import torch, mydevice
x = torch.arange(6.).view(2, 3)
y = x.to("mydevice")
assert y.device.type == "mydevice" and y.is_mydevice
assert torch.equal(torch.add(y, y, alpha=2).cpu(), 3 * x)
assert torch.equal((y * y).t().cpu(), (x * x).t())  # a product on the CPU, a view on the device
y[0] += 1
assert y.cpu().tolist() == [[1, 2, 3], [3, 4, 5]]
w = torch.ones(3, device="mydevice", requires_grad=True)
(w + w).sum().backward()
assert w.grad.cpu().tolist() == [2, 2, 2]
__import__("time").sleep(0.5)  # torch 2.13 aborts if Python ends while its thread for the device still drops the graph
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert here("lint", "--torch", "2.13").code == 0
    verified_against_the_cpu(here, tmp_path)


FAULTY = """\
import torch

import mydevice

library = torch.library.Library("aten", "IMPL")


def add(self, other, *, alpha=1):
    return (self.cpu() + alpha * other.cpu().abs()).to(self.device)


library.impl("add.Tensor", add, "PrivateUse1")
"""


def verified_against_the_cpu(here: Here, folder: Path) -> None:
    """Verify the kernels of the backend that was built, then one in the place of its `add` that takes absolute values."""
    (folder / "mydevice/faulty.py").write_text(FAULTY)
    options = ("--import", "mydevice", "--device", "cpu", "--cells", "4", "--output-format", "json")
    for more, code, found in (((), 0, {"within-tolerance"}), (("--import", "mydevice.faulty"), 1, {"regression"})):
        done = here("verify", "aten::add.Tensor", *options, *more)
        assert done.code == code
        verdicts = {item["id"]: item["verdict"] for item in json.loads(done.out)["cells"]}
        assert len(verdicts) == 4
        assert set(verdicts.values()) == found

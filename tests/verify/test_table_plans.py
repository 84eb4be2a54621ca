"""Operators of torch.library from the operator table: planned, called, compared, without a manifest or a recipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from opschema_cli.commands.plugins import open_workspace
from opschema_cli.main import run as opschema
from opschema_cli.verify.model import Target
from opschema_cli.verify.op_names import op_names
from opschema_cli.verify.prepare import Asked, plans_of
from opschema_cli.verify.table_plans import table_plans

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

OPS = """
import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("kit::scaled_add", mutates_args=())
def scaled_add(x: Tensor, y: Tensor, alpha: float = 2.0) -> Tensor:
    return x + alpha * y


@scaled_add.register_fake
def _(x, y, alpha=2.0):
    torch._check(x.shape == y.shape)
    return torch.empty_like(x)


lib = torch.library.Library("kit", "FRAGMENT")
lib.define("norm(Tensor x, Tensor weight, float eps=1e-6) -> Tensor")


@torch.library.impl(lib, "norm", "CompositeExplicitAutograd")
def norm(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


@torch.library.impl(lib, "norm", "CPU")
def norm_cpu(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


@torch.library.register_fake("kit::norm")
def _(x, weight, eps=1e-6):
    torch._check(weight.dim() == 1 and weight.shape[0] == x.shape[-1])
    return torch.empty_like(x)


lib.define("drawn(Tensor x, Generator g) -> Tensor")


@torch.library.impl(lib, "drawn", "CPU")
def drawn(x, g):
    return torch.rand(x.shape, generator=g)


def test_registers():
    @custom_op("kit::nested", mutates_args=())
    def nested(x: Tensor) -> Tensor:
        return x + 1
"""

BESIDE = """
from kit.ops import scaled_add
from torch import Tensor
from torch.library import custom_op


@custom_op("kit::beside", mutates_args=())
def beside(x: Tensor) -> Tensor:
    return scaled_add(x, x)


@beside.register_fake
def _(x):
    return x.new_empty(x.shape)
"""


def write(root: Path, ops: str) -> Path:
    (root / "kit").mkdir(parents=True)
    (root / "kit/__init__.py").write_text("")
    (root / "kit/ops.py").write_text(ops)
    (root / "opschema.toml").write_text("")
    (root / "examples").mkdir()
    (root / "examples/beside.py").write_text(BESIDE)
    return root


def test_operators_are_run_before_and_after_and_against_another_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(tmp_path / "old", OPS)
    # After, `alpha` is ignored where it has its default, and the CPU kernel of `norm` loses `eps`.
    changed = OPS.replace("return x + alpha * y", "return x + y if alpha == 2.0 else x + alpha * y")
    head, _, tail = changed.partition("def norm_cpu")
    monkeypatch.chdir(write(tmp_path / "new", f"{head}def norm_cpu{tail.replace(' + eps', ' + 1e-2', 1)}"))
    assert opschema(["verify", "--before", str(before), "--cells", "5", "--output-format", "json"]) == 1
    cells = json.loads(capsys.readouterr().out)["cells"]
    verdicts = {cell["id"]: (cell["verdict"], cell["reason"]) for cell in cells}
    assert verdicts["kit::scaled_add[call-1-float32-row-s0]"][0] == "regression"
    verdict, reason = verdicts["kit::norm[call-1-float32-row-s0]"]
    assert (verdict, reason.partition(":")[0]) == ("regression", "after")
    assert "elements are beyond" in reason
    assert verdicts["kit::beside[call-1-float32-row-s0]"][0] == "regression"
    nested = "it is defined within `test_registers`: --import can name a module that calls this"
    reason = f"importing `kit.ops` does not register it; {nested}"
    assert verdicts["kit::nested"] == ("not-checked", reason)
    reason = "no value of type `Generator` can be made for `g`; a recipe can list calls (`opschema verify --init`)"
    assert verdicts["kit::drawn"] == ("not-checked", reason)


def test_what_git_does_not_track_is_missing_from_a_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path / "kit", "from kit import built\n" + OPS)
    (root / ".gitignore").write_text("built.py\n")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    (root / "kit/built.py").write_text("")
    monkeypatch.chdir(root)
    asked = ["verify", "scaled_add", "--cells", "1", "--device", "cpu", "--before"]
    assert opschema([*asked, "HEAD"]) == 1
    said = capsys.readouterr()
    assert "HEAD was exported from git, without built extensions" in said.err
    assert "importing `kit.ops`: ImportError" in said.out
    assert "\\n" not in said.out
    assert opschema([*asked, str(root)]) == 0
    assert "exported from git" not in capsys.readouterr().err


STRICTER = """
import torch


@torch.library.custom_op("kit::even", mutates_args=())
def even(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@even.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("kit::plain", mutates_args=())
def plain(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@plain.register_fake
def _(x):
    return torch.empty_like(x)
"""


def before_and_after(
    op: str,
    broken: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> dict[str, tuple[str, str]]:
    """The verdicts and reasons of an operator's cells where a change breaks it."""
    before = write(tmp_path / "before", STRICTER)
    monkeypatch.chdir(write(tmp_path / "after", STRICTER.replace(*broken)))
    asked = [op, "--before", str(before), "--device", "cpu", "--cells", "6"]
    assert opschema(["verify", *asked, "--output-format", "json"]) == 1
    cells = json.loads(capsys.readouterr().out)["cells"]
    return {cell["id"]: (cell["verdict"], cell["reason"]) for cell in cells}


def test_calls_that_only_before_accepts_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Odd numbers of elements have no half: a search in this tree alone avoids them.
    broken = ("x * 2", "x.view(2, -1).mul(2).view_as(x)")
    verdicts = before_and_after("kit::even", broken, tmp_path, monkeypatch, capsys)
    assert verdicts["kit::even[call-1-float32-row-s0]"][0] == "unchanged"
    verdict, reason = verdicts["kit::even[call-1-float32-odd-s0]"]
    assert (verdict, "shape '[2, -1]' is invalid for input of size" in reason) == ("regression", True)


@pytest.mark.skipif(not os.environ.get("OPSCHEMA_SLOW"), reason="tries a hundred calls for a minute")
def test_calls_of_before_are_made_where_after_accepts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = before_and_after("kit::plain", ("x * 3", "x.mul(tree)"), tmp_path, monkeypatch, capsys)
    verdict, reason = verdicts["kit::plain[call-1-float32-row-s0]"]
    assert (verdict, "name 'tree' is not defined" in reason) == ("regression", True)


IN_STRINGS = '''
from torch.utils.cpp_extension import load_inline

CODE = """
TORCH_LIBRARY(kit, m) { m.def("halve(Tensor x) -> Tensor"); }
"""


def build():
    load_inline("kit", cpp_sources=CODE, is_python_module=False)
'''


@pytest.mark.parametrize(("tail", "nested"), [("", True), ("\n\nload_inline('kit', CODE)\n", False)])
def test_an_operator_in_a_string_of_cpp_has_the_plan_of_its_module(tmp_path: Path, tail: str, nested: bool) -> None:
    root = write(tmp_path / "kit", IN_STRINGS + tail)
    with closing(open_workspace(root, no_plugins=True, cache=False)) as session:
        (plan,) = plans_of(session, Asked(ops=["kit::halve"], imports=()))
    assert (plan.target.module, plan.target.imports, plan.unplanned) == ("kit.ops", ("kit.ops",), {})
    assert plan.search is not None
    assert plan.search.is_nested is nested
    assert plan.target.compiling == (("build",) if nested else ())


@pytest.mark.parametrize(
    ("head", "call", "compiling", "within"),
    [
        ("def build():", "load_inline", ("build",), "build"),
        ("def build(name):", "load_inline", (), "build"),
        ("def test_build():", "load_inline", (), "test_build"),
        ("def build(name='kit'):\n    pass\ndef again():", "load_inline", ("again",), "again"),
        ("class Kit:\n  def build(self):", "load_inline", (), ""),
    ],
)
def test_a_function_that_compiles_an_operator_is_called_if_it_can_be(
    tmp_path: Path, head: str, call: str, compiling: tuple[str, ...], within: str
) -> None:
    root = write(tmp_path / "kit", IN_STRINGS.replace("def build():", head))
    with closing(open_workspace(root, no_plugins=True, cache=False)) as session:
        (plan,) = plans_of(session, Asked(ops=["kit::halve"], imports=()))
    assert plan.search is not None
    assert (plan.target.compiling, plan.search.within) == (compiling, within)


COMPILED_LATER = """
import torch


def build_for_cuda():
    raise OSError("there is no nvcc")


def build():
    torch.library.define("kit::halve", "(Tensor x) -> Tensor")


def arguments(name):
    raise AssertionError("it is not called")
"""


def test_functions_that_compile_are_called_until_the_operator_is_there(tmp_path: Path) -> None:
    root = write(tmp_path / "kit", COMPILED_LATER)
    target = Target(root=str(root), module="kit.ops", name="x", operator="kit::halve", paths=(".",))
    code = (
        "import sys, msgspec\nfrom opschema_cli.verify.model import Target\n"
        "from opschema_cli.verify.registered import import_target\n"
        "print(import_target(msgspec.json.decode(sys.argv[1], type=Target)).__name__)"
    )
    for compiling, said in (
        (("build_for_cuda", "build"), "kit.halve.default"),
        ((), "register"),
    ):
        wanted = msgspec.json.encode(msgspec.structs.replace(target, compiling=compiling)).decode()
        ran = subprocess.run([sys.executable, "-c", code, wanted], capture_output=True, text=True, check=False)
        assert said in ran.stdout + ran.stderr


FOR_DEVICES = """
import torch

torch.library.define("kit::scale", "(Tensor x) -> Tensor")
"""
ON_DEVICE = """
import torch


@torch.library.impl("kit::scale", "{key}")
def scale(x):
    return x * 2
"""


def test_modules_for_other_devices_are_not_imported(tmp_path: Path) -> None:
    root = write(tmp_path / "kit", FOR_DEVICES)
    keys = ("CPU", "cpu", "CUDA", "XPU", "mps", "PrivateUse1", "CompositeExplicitAutograd")
    for number, key in enumerate(keys):
        (root / f"kit/kernel_{number}.py").write_text(ON_DEVICE.format(key=key))
    with closing(open_workspace(root, no_plugins=True, cache=False)) as session:
        plans = {plan.op: plan.target for plan in plans_of(session, Asked(ops=["kit::scale"], imports=()))}
    here, there = plans["kit::scale"], plans["kit::scale@PrivateUse1"]
    assert here.imports == ("kit.ops", "kit.kernel_0", "kit.kernel_1", "kit.kernel_6")
    assert (here.cuda_imports, here.backend) == (("kit.kernel_2",), False)
    assert there.imports == ("kit.ops", "kit.kernel_0", "kit.kernel_1", "kit.kernel_5", "kit.kernel_6")
    assert (there.cuda_imports, there.backend) == ((), True)


def test_the_kernel_of_a_backend_that_is_not_there_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = "".join(ON_DEVICE.format(key=key) for key in ("CPU", "PrivateUse1"))
    before = write(tmp_path / "before", FOR_DEVICES + kernels)
    monkeypatch.chdir(write(tmp_path / "after", FOR_DEVICES + kernels))
    asked = ["verify", "scale", "--before", str(before), "--device", "cpu", "--cells", "1", "--output-format", "json"]
    assert opschema(asked) == 0
    cells = {cell["op"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert cells["kit::scale"]["verdict"] in ("unchanged", "wrong-already")
    there = cells["kit::scale@PrivateUse1"]
    assert there["verdict"] == "not-checked"
    assert there["reason"].endswith("`aten::empty.memory_format` for PrivateUse1: no tensor can be made there")


LOADS = """
from pathlib import Path
from torch.utils.cpp_extension import load

load("kit", sources=[Path(__file__).parent / "csrc/halve.cpp"], is_python_module=False)
"""
HALVE = 'TORCH_LIBRARY(kit, m) { m.def("halve(Tensor x) -> Tensor"); }'


@pytest.mark.parametrize(
    ("text", "imports", "module"),
    [
        (LOADS, (), "kit.ops"),
        (LOADS.replace("import load", "import CppExtension").replace("load(", "CppExtension("), (), ""),
        (LOADS.replace("halve.cpp", "double_halve.cpp"), (), ""),
        (LOADS, ("built.so",), ""),
    ],
)
def test_an_operator_of_cpp_has_the_plan_of_the_module_that_compiles_it(
    tmp_path: Path, text: str, imports: tuple[str, ...], module: str
) -> None:
    root = write(tmp_path / "kit", text)
    (root / "kit/csrc").mkdir()
    (root / "kit/csrc/halve.cpp").write_text(HALVE)
    with closing(open_workspace(root, no_plugins=True, cache=False)) as session:
        names = op_names(session)
        (plan,) = table_plans(session, [item for item in names.unplanned() if item.name == "kit::halve"], imports)
    assert plan.target.module == module
    reason = "it is defined in `kit/csrc/halve.cpp`, which cannot be imported; name the module that registers it with --import"
    assert plan.unplanned == ({} if module or imports else {"kit::halve": reason})

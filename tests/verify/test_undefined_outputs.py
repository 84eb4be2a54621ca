"""Operators that leave outputs out which a mask turns off, and calls that a search finds, end to end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import torch

from opschema_cli.main import run as opschema
from opschema_cli.verify.model import Call, Input, Output
from opschema_cli.verify.worth import weakness

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

OPS = """
import torch

lib = torch.library.Library("kit", "FRAGMENT")
lib.define("grads(Tensor grad, Tensor x, bool[2] mask) -> (Tensor, Tensor)")
lib.define("log(Tensor x) -> Tensor")
lib.define("counts(Tensor x) -> Tensor")


def both(grad, x, mask):
    return grad * x if mask[0] else None, grad.sum(0) if mask[1] else None


def right(grad, x, mask):
    return BODY


lib.impl("grads", both, "CompositeExplicitAutograd")
lib.impl("grads", right, "CPU")


@torch.library.register_fake("kit::grads")
def _(grad, x, mask):
    torch._check(grad.shape == x.shape and grad.dim() == 2)
    return grad.new_empty(grad.shape) if mask[0] else None, grad.new_empty(grad.shape[1:]) if mask[1] else None


@torch.library.impl(lib, "log", "CPU")
def log(x):
    return torch.full_like(x, float("nan"))


@torch.library.register_fake("kit::log")
def _(x):
    torch._check(x.is_floating_point())
    return torch.empty_like(x)


# Rounded to bfloat16, a number falls into another part than in float64.
lib.impl("counts", lambda x: (x * 1.1).floor(), "CompositeExplicitAutograd")
lib.impl("counts", lambda x: (x * 1.1).floor(), "CPU")


@torch.library.register_fake("kit::counts")
def _(x):
    return torch.empty_like(x)
"""


def verified(folder: Path, op: str, body: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    for side, text in (("before", "both(grad, x, mask)"), ("after", body)):
        (folder / side / "kit").mkdir(parents=True)
        (folder / side / "opschema.toml").write_text("")
        (folder / side / "kit/__init__.py").write_text("")
        (folder / side / "kit/ops.py").write_text(OPS.replace("BODY", text))
    sides = ("--before", str(folder / "before"), "--after", str(folder / "after"))
    opschema(["verify", op, *sides, "--device", "cpu", "--cells", "16", "--output-format", "json"])
    cells: list[dict[str, str]] = json.loads(capsys.readouterr().out)["cells"]
    return cells


def test_an_output_that_a_mask_turns_off_is_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = verified(tmp_path, "kit::grads", "both(grad, x, mask)", capsys)
    assert {cell["verdict"] for cell in cells} == {"unchanged"}, cells
    said = {cell["id"]: cell.get("reason", "") for cell in cells}
    assert said["kit::grads[call-1-float32-row-s0]"] == ""  # both outputs are there


def test_an_output_that_is_left_out_wrongly_is_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = verified(tmp_path, "kit::grads", "(both(grad, x, mask)[0], None)", capsys)
    first = next(cell for cell in cells if "call-1-float32-row-s0" in cell["id"])
    assert first["verdict"] == "regression"
    assert "`output1` is undefined, but the reference returns it" in first["reason"]


def test_a_call_whose_results_are_all_nan_is_not_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = verified(tmp_path, "kit::log", "both(grad, x, mask)", capsys)
    rows = [cell for cell in cells if cell["id"].endswith("float32-row-s0]")]
    assert {cell["verdict"] for cell in rows} == {"not-checked"}
    assert "no element of its outputs is a finite number" in rows[0]["reason"]


def test_what_another_kernel_computes_in_the_same_dtype_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = verified(tmp_path, "kit::counts", "both(grad, x, mask)", capsys)
    assert any("bfloat16" in cell["id"] for cell in cells)
    assert {cell["verdict"] for cell in cells} == {"unchanged"}, cells


def test_the_worth_of_results() -> None:
    call = Call(
        inputs=(Input(name="x", shape=(3,), dtype="float32"),),
        outputs=(Output(name="y"), Output(name="z", optional=True)),
    )
    varied, nan = torch.arange(3.0), torch.full((3,), torch.nan)
    assert weakness(call, {"y": varied, "z": nan}) is None
    assert weakness(call, {"y": varied}) == "undefined"
    assert weakness(call, {"y": nan, "z": nan}) == "not finite"
    assert weakness(call, {"y": torch.ones(3), "z": torch.zeros(2, dtype=torch.bool)}) == "constant"
    assert weakness(call, {"y": torch.ones(3).to(torch.float8_e4m3fn), "z": torch.zeros(1)}) == "constant"
    assert weakness(call, {"y": torch.tensor(3.0), "z": torch.tensor(1)}) is None
    one = msgspec.structs.replace(call, inputs=(Input(name="x", shape=(1, 1), dtype="float32"),))
    assert weakness(one, {"y": torch.tensor(3.0), "z": torch.tensor(1)}) == "constant"
    assert weakness(call, {"y": torch.ones(0), "z": torch.ones(2, 0)}) == "empty"
    assert weakness(call, {}) == "nothing"

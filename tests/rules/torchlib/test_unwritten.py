"""In-place kernels that do not write, and those that may."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK


def messages(body: str, name: str = "sigmoid_", params: str = "x") -> list[str]:
    text = f'import torch\nfrom kit import launch, helper\n\n\n@torch.library.impl("aten::{name}", "CUDA")\ndef f({params}):\n'
    text += "".join(f"    {line}\n" for line in body.splitlines())
    return [item.message for item in lint_files(PACK, {"kit/ops.py": text}).diagnostics if item.code == "REG511"]


@pytest.mark.parametrize(
    "body",
    [
        "return torch.sigmoid(x)",
        "return 1 / (1 + torch.exp(-x))",
        "y = x.exp()\nlaunch(y, x.numel(), x.dtype)\nreturn y",
        "out = torch.empty_like(x)\nreturn out",
    ],
)
def test_a_kernel_that_only_reads_is_reported(body: str) -> None:
    assert messages(body) == ["`aten::sigmoid_` is an in-place operator, but the kernel does not write `x`"]


@pytest.mark.parametrize(
    "body",
    [
        "launch(x)\nreturn torch.sigmoid(x)",
        "x.copy_(torch.sigmoid(x))\nreturn x.exp()",
        "torch.sigmoid(x, out=x)\nreturn x.exp()",
        "x[:] = torch.sigmoid(x)\nreturn x * 1",
        "x += 1\nreturn x * 1",
        "y = x\ny.exp_()\nreturn y * 1",
        "x.view(-1).exp_()\nreturn x * 1",
        "x.t().exp_()\nreturn x * 1",
        "x.data.exp_()\nreturn x * 1",
        "torch.sigmoid_(x)\nreturn x * 1",
        "torch.ops.aten.sigmoid_(x)\nreturn x * 1",
        "helper.sigmoid(x)\nreturn x * 1",
        "def g():\n    x.exp_()\ng()\nreturn x * 1",
        "[y.exp_() for y in [x]]\nreturn x * 1",
        "launch(locals())\nreturn x",
        "return x",
        "with torch.no_grad():\n    x.exp_()\nreturn x * 1",
        "x = x.exp_()\nreturn x * 1",
        "raise NotImplementedError",
    ],
)
def test_a_kernel_that_may_write_is_not(body: str) -> None:
    assert messages(body) == []


def test_an_operator_that_is_not_in_place_is_not() -> None:
    assert messages("return torch.sigmoid(x)", "sigmoid") == []

"""`opschema diff` of a manifest and the classes of its ops: workloads that the new code refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_rules.tileops.examples import example_files
from tests.command import Here

OP = """\
class ExampleFwdOp(Op):
    def __init__(self, eps: float = 0.5, *, kernel_map=None):
        self.eps = eps
        {check}
        self.dispatch_kernel(kernel_map)

    def _infer_output_shapes(self, x_shape):
        {shape_check}
        return {{"y": x_shape}}

    def _validate_dtypes(self, x):
        {dtype_check}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.kernel_map["example"](x, self.eps)
"""


def written(
    folder: Path, check: str = "", shape_check: str = "", dtype_check: str = "", *more: tuple[str, str]
) -> None:
    parts = (item or "pass" for item in (check, shape_check, dtype_check))
    text = OP.format(**dict(zip(("check", "shape_check", "dtype_check"), parts, strict=True)))
    for path, content in example_files([("python", text), *more]).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def test_workloads_that_the_new_code_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    device = "if torch.cuda.get_device_capability() < (9, 0): raise RuntimeError('old device')"
    written(old, shape_check=device.replace("(9, 0)", "(8, 0)"))
    new.mkdir()
    opschema = Here(new, tmp_path / "cache", monkeypatch, capsys)

    def refused(*arguments: str, row: tuple[str, str] | None = None) -> list[str]:
        written(new, *(*arguments, "", "", "")[:3], *([row] if row else []))
        lines = opschema("diff", "--against", str(old), "--output-format", "concise").out.splitlines()
        return [line.partition("`ExampleFwdOp`: ")[2] for line in lines if "DIF216" in line]

    written(old)
    assert refused() == []
    assert refused("", "if x_shape[0] > 512: raise ValueError('too many rows')") == [
        "it now refuses the workload `large` with `ValueError` in `_infer_output_shapes()`: too many rows "
        "(affects callers) (ops: ExampleFwdOp)"
    ]
    row = ("yaml", 'workloads:\n  - {x_shape: [4, 8], dtypes: [float16], label: "small"}\n')
    assert len(refused("", "if x_shape[0] > 512: raise ValueError('too many rows')", row=row)) == 1
    assert refused("", "", "if x.dtype == torch.float32: raise TypeError('no float32')")[0].startswith(
        "it now refuses the workload `large` with `TypeError` in `_validate_dtypes()`: no float32"
    )
    assert refused("if eps == 0.5: raise ValueError('eps')")[0].startswith(
        "it now refuses the workload `small` and 1 more with `ValueError` in `__init__()`: eps"
    )
    assert refused(device) == []  # whether it refuses depends on the device

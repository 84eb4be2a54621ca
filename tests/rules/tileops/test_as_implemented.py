"""``opschema lint --as-implemented``: a planned op, judged by what an implemented one must satisfy."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_rules.tileops.examples import example_files
from tests.command import Here

PLANNED = 'status: spec-only\nworkloads:\n  - {x_shape: [4, 8], dtypes: [float16], label: "small"}\n'
RENAMED = """\
class ExampleFwdOp(Op):
    def __init__(self, epsilon: float = 0.5, *, kernel_map=None):
        self.dispatch_kernel(kernel_map)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
"""


@pytest.fixture
def opschema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    files = example_files([("yaml", PLANNED), ("python", RENAMED)])
    files["kit/manifest/other.yaml"] = "OtherFwdOp: {signature: {}, workloads: [], roofline: {}, status: implemented}\n"
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Here(tmp_path, tmp_path / "cache", monkeypatch, capsys)


def found(text: str) -> list[str]:
    """Operator, severity and code of each finding in a concise report."""
    return [
        f"{line.split()[-1][:-1]} {line.split()[1]} {line.split()[2]}" for line in text.splitlines() if "(ops:" in line
    ]


def test_a_planned_op_is_judged_as_an_implemented_one(opschema: Here) -> None:
    ask = ("lint", "--output-format", "concise", "--select", "SIG201,WKL101,BEN101")
    other = ["OtherFwdOp error WKL101"]
    planned = ["ExampleFwdOp warning SIG201"]
    promoted = ["ExampleFwdOp error SIG201", "ExampleFwdOp error WKL101"]
    assert found(opschema(*ask).out) == planned + other
    for _ in range(2):  # the second run is replayed
        done = opschema(*ask, "--as-implemented", "ExampleFwdOp")
        assert (done.code, found(done.out)) == (1, promoted)
    assert found(opschema(*ask).out) == planned + other


def test_a_name_that_no_operator_has_is_wrong_usage(opschema: Here) -> None:
    done = opschema("lint", "--as-implemented", "ExampleOp")
    assert done.code == 2
    assert "--as-implemented: no operator here is called `ExampleOp`" in done.err
    assert opschema("lint", "--as-implemented", "ExampleFwdOp", "--write-baseline").code == 2

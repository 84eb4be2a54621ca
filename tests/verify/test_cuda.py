"""The same on a GPU: tilekit's kernels by nvcc, before and after its carriers are dropped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command import TILEKIT, Opschema

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no NVIDIA GPU"),
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="tilekit's kernels need nvcc"),
]


def test_tilekit_computes_the_same_on_a_gpu_without_its_carriers(tmp_path: Path) -> None:
    for side in ("before", "after"):
        shutil.copytree(TILEKIT, tmp_path / side)
    shutil.copytree(TILEKIT.with_name("tilekit_migrated"), tmp_path / "after", dirs_exist_ok=True)
    done = Opschema(tmp_path / "after", tmp_path / "cache")(
        *("verify", "--before", "../before", "--device", "cuda", "--output-format", "json"), timeout=1200
    )
    found = json.loads(done.out)
    assert found["device"] == torch.cuda.get_device_name()
    assert {cell["verdict"] for cell in found["cells"]} == {"unchanged", "not-checked"}, done.out
    checked = [cell for cell in found["cells"] if cell["verdict"] == "unchanged"]
    assert len(checked) > 300
    assert all(cell.get("figures") for cell in checked)
    assert done.code == 0

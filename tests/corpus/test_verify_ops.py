"""`verify` runs real ops of TileOPs on the CPU, before and after `drop-carrier`: the same bits, and right."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.command import Opschema

pytestmark = pytest.mark.skipif(find_spec("tilelang") is None, reason="TileOPs needs tilelang")

PARENT = "tileops-bfae9be4-parent"
OPS = ("AlibiFwdOp", "SinusoidalFwdOp")
RECIPES = Path(__file__).with_name("tileops_recipes.py")
LARGEST = 2048 * 4096
"""The elements of the smaller of Sinusoidal's rows, which is run as it stands."""


@pytest.fixture
def trees(corpus: Path, tmp_path: Path) -> tuple[Path, Path]:
    """TileOPs as it was, and as `drop-carrier` makes it."""
    if not (corpus / PARENT).is_dir():
        pytest.skip(f"{PARENT} is not below OPSCHEMA_CORPUS")
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(corpus / PARENT, before)
    shutil.copytree(before, after)
    done = Opschema(after, tmp_path / "cache")("migrate", "drop-carrier", "--apply", "--allow-dirty", timeout=300)
    assert done.code == 0, done.out + done.err
    shutil.copy(RECIPES, after / "tests")
    (after / "opschema.toml").write_text('[verify]\nrecipe = "tests/tileops_recipes.py"\n')
    return before, after


def test_ops_without_inputs_compute_the_same_when_their_carriers_are_gone(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    before, after = trees
    options = ["--before", before, "--device", "cpu", "--elements", str(LARGEST), "--output-format", "json"]
    done = Opschema(after, tmp_path / "cache")("verify", *OPS, *options, timeout=600)
    assert done.code == 0, done.out + done.err
    report = json.loads(done.out)
    assert (report["missing"], report["device"]) == ([], "cpu-sim")

    run = {cell["id"]: cell for cell in report["cells"] if cell["verdict"] == "unchanged"}
    assert "SinusoidalFwdOp[transformer-2k-4k-float16-row-s0]" in run
    assert {"AlibiFwdOp", "SinusoidalFwdOp"} == {cell["op"] for cell in run.values()}
    assert all("-float16-" in name for name in run)
    for cell in run.values():
        judged = {figure["side"]: figure for figure in cell["figures"]}
        assert judged.keys() == {"before", "after"}
        assert all(figure.get("beyond", 0) == 0 and figure.get("kappa", 0) < 2 for figure in judged.values())

    unchecked = [cell for cell in report["cells"] if cell["id"] not in run]
    assert {cell["verdict"] for cell in unchecked} == {"not-checked"}
    assert {cell["reason"].split(": ")[-1].partition(";")[0] for cell in unchecked} == {
        "TileLang's C target has no bfloat16",
        "`output` has 16,777,216 elements",
        "`output` has 134,217,728 elements",
        "`output` has 536,870,912 elements",
    }

"""Workers under a sanitizer, and what it says."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from opschema_cli.errors import OpschemaError
from opschema_cli.main import run as opschema
from opschema_cli.verify.results import read_results
from opschema_cli.verify.sanitizers import EXIT_CODE, summary, under_sanitizer
from opschema_cli.verify.workers import Workers
from tests.verify.faults import Fault, cu, plant
from tests.verify.oplib import cell, plan

TILEKIT = Path(__file__).resolve().parents[2] / "fixtures" / "tilekit"
MEMCHECK = """
========= Invalid __global__ write of size 2 bytes
=========     at void gelu<__half>(const T1 *, T1 *, long)+0x1c0 in /home/u/kernels/gelu.cu:8
=========     by thread (213,0,0) in block (1,0,0)
=========     Address 0x7f0000000600 is out of bounds
========= ERROR SUMMARY: 1 error
"""


def environment() -> dict[str, str]:
    try:
        return under_sanitizer("cpu", os.environ)[1]
    except OpschemaError as error:
        pytest.skip(str(error))


BEYOND = Fault(
    "writes one element beyond an odd output",
    "GeluFwdOp",
    cu("gelu", "out[i] = narrow<T>(0.5f", "out[i + (i == n - 1) * n % 2] = narrow<T>(0.5f"),
    {},
)


def test_a_write_beyond_is_named_with_its_line_at_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment()
    root = plant(BEYOND, TILEKIT, tmp_path)
    (edit,) = BEYOND.edits
    source = (root / edit.path).read_text(encoding="utf-8")
    line = source[: source.index(edit.new)].count("\n") + 1
    monkeypatch.chdir(root)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["verify", "GeluFwdOp", "--device", "cpu", "--sanitizer", "--cells", "4", "--results", str(tmp_path / "r")]
    assert opschema(asked) == 1
    cells = read_results(tmp_path / "r").cells
    sound, beyond = cells["GeluFwdOp[mlp-float16-row-s0]"], cells["GeluFwdOp[mlp-float16-odd-s0]"]
    assert (sound.verdict, beyond.verdict) == ("within-tolerance", "crashed"), (sound, beyond)
    ended, what, place, *_ = beyond.reason.splitlines()
    assert ended == f"after died: the process ended itself with exit status {EXIT_CODE}, running the cell"
    assert what == "heap-buffer-overflow, WRITE of size 2"
    assert place.startswith(f"at gelu.cu:{line} in void gelu<")
    told = capsys.readouterr().out
    assert told.index("crashed  GeluFwdOp[mlp-float16-odd-s0]") < told.index(f"    {what}\n    {place}\n")


TELLS = """
import os
from opschema_cli.verify.recipes import Recipe, recipe

@recipe("Op")
class Tells(Recipe):
    def reference(self, tensors, params):
        raise ValueError(f"under {os.environ.get('OPSCHEMA_SANITIZED')}")
"""


def test_the_reference_runs_outside_of_it(tmp_path: Path) -> None:
    environment()
    (tmp_path / "recipes.py").write_text(TELLS)
    here = plan(tmp_path)
    here = msgspec.structs.replace(here, target=msgspec.structs.replace(here.target, recipe="recipes.py"))
    with Workers(tmp_path / "scratch", device="cpu", sanitizer=True) as workers:
        ran = workers.run("reference", here, cell("r"), "cpu", 60)
    assert ran.detail.startswith("ValueError: under None\n")


def test_what_was_set_is_kept() -> None:
    environment()
    environ = {**os.environ, "LD_PRELOAD": "mine.so", "CXXFLAGS": "-DX"}
    prefix, found = under_sanitizer("cpu", environ)
    assert prefix == []
    assert found["LD_PRELOAD"].endswith(" mine.so")
    assert found["CXXFLAGS"].startswith("-DX -O1")
    assert "detect_leaks=0" in found["ASAN_OPTIONS"]


def test_without_a_sanitizer_it_says_so(tmp_path: Path) -> None:
    for device in ("cpu", "cuda"):
        with pytest.raises(OpschemaError, match="--sanitizer on a"):
            under_sanitizer(device, {"PATH": str(tmp_path)})


def test_a_gpu_needs_a_command_and_no_caching(tmp_path: Path) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    prefix, environ = under_sanitizer("cuda", {"PATH": str(tmp_path)})
    assert prefix[0] == str(tool)
    assert environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Traceback ...\nValueError: no", ""),
        (
            MEMCHECK,
            "Invalid __global__ write of size 2 bytes\nat gelu.cu:8 in void gelu<__half>(const T1 *, T1 *, long)+0x1c0",
        ),
    ],
)
def test_a_report(said: str, expected: str) -> None:
    assert summary(said) == expected

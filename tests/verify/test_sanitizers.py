"""Workers under a sanitizer, and what it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from opschema_cli.errors import OpschemaError
from opschema_cli.main import run as opschema
from opschema_cli.verify import compute_sanitizer
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
        return under_sanitizer("memcheck", os.environ, None)[1]
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
    asked = ["verify", "GeluFwdOp", "--device", "cpu", "--sanitizer", "--cells", "4", "--fail-fast"]
    assert opschema([*asked, "--results", str(tmp_path / "r")]) == 1
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
    with Workers(tmp_path / "scratch", device="cpu", sanitizer="memcheck") as workers:
        ran = workers.run("reference", here, cell("r"), "cpu", 60)
    assert ran.detail.startswith("ValueError: under None\n")


def test_what_was_set_is_kept() -> None:
    environment()
    environ = {**os.environ, "LD_PRELOAD": "mine.so", "CXXFLAGS": "-DX"}
    prefix, found = under_sanitizer("memcheck", environ, None)
    assert prefix == []
    assert found["LD_PRELOAD"].endswith(" mine.so")
    assert found["CXXFLAGS"].startswith("-DX -O1")
    assert "detect_leaks=0" in found["ASAN_OPTIONS"]


def test_without_a_sanitizer_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_sanitizer, "_USUAL", "")
    monkeypatch.setattr("sys.path", [])
    nothing = {"PATH": str(tmp_path)}
    with pytest.raises(OpschemaError, match="--sanitizer on a CPU needs g"):
        under_sanitizer("memcheck", nothing, None)
    with pytest.raises(OpschemaError, match="pip install nvidia-cuda-sanitizer-api"):
        under_sanitizer("memcheck", nothing, tmp_path / "log")
    with pytest.raises(OpschemaError, match="racecheck needs a GPU"):
        under_sanitizer("racecheck", nothing, None)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


def test_the_tool_is_found_beside_python_and_sees_allocations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_sanitizer, "_USUAL", "")
    monkeypatch.syspath_prepend(tmp_path)
    tool = script(tmp_path / "nvidia" / "cu13" / "compute-sanitizer" / "compute-sanitizer", "")
    for name, cached in (("memcheck", False), ("initcheck", False), ("racecheck", True)):
        prefix, environ = under_sanitizer(name, {"PATH": ""}, tmp_path / "log")  # type: ignore[arg-type]
        assert prefix[0] == str(tool)
        assert prefix[prefix.index("--tool") + 1] == name
        assert prefix[prefix.index("--log-file") + 1] == str(tmp_path / "log")
        assert ("PYTORCH_NO_CUDA_MEMORY_CACHING" not in environ) is cached


FAKE = """
for argument; do
  [ "$previous" = --log-file ] && log=$argument
  previous=$argument
done
echo "========= COMPUTE-SANITIZER" >> "$log"
exec {python} {worker} "$log"
"""
"""Stands for compute-sanitizer, and runs a worker that answers as one does, without torch."""
WORKER = """
import sys
from opschema_cli.verify.model import Ran
from opschema_cli.verify.protocol import Done, Loaded, read_request, write

requests, replies = sys.stdin.buffer, sys.stdout.buffer
read_request(requests)
write(replies, Loaded())
while request := read_request(requests):
    do = request.cell.call.params["do"]
    if do:
        with open(sys.argv[1], "a") as log:
            log.write({race!r})
    ran = Ran(cell=request.cell.id, status="raised" if do == "raise" else "ok", detail="CUDA error" if do == "raise" else "")
    write(replies, Done(ran=ran))
"""
RACE = """\
========= Error: Race reported between Write access at total<float>(T1 *)+0x90 in sum.cu:13
=========     and Read access at total<float>(T1 *)+0xa0 in sum.cu:14 [2048 hazards]
=========
"""


def test_what_a_tool_logs_is_reported_at_its_cell_and_nothing_of_it_is_read_as_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER.format(race=RACE))
    fake = script(tmp_path / "bin" / "compute-sanitizer", FAKE.format(python=sys.executable, worker=worker))
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    with Workers(tmp_path / "scratch", device="cuda", sanitizer="racecheck") as workers:
        sound, racing, raising, later = (
            workers.run("after", plan(tmp_path), cell(name, do), "cpu", 60)
            for name, do in (("sound", ""), ("racing", "race"), ("raising", "raise"), ("later", ""))
        )
    said = (
        "Race reported between Write, at sum.cu:13 in total<float>(T1 *)+0x90, at sum.cu:14 in total<float>(T1 *)+0xa0"
    )
    assert (sound.status, sound.findings) == (later.status, later.findings) == ("ok", ())
    assert [(finding.check, finding.message) for finding in racing.findings] == [("sanitizer", said)]
    assert raising.status == "raised"
    assert raising.detail == said.replace(", at", "\nat") + "\nCUDA error"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", ""),
        (
            MEMCHECK,
            "Invalid __global__ write of size 2 bytes\nat gelu.cu:8 in void gelu<__half>(const T1 *, T1 *, long)+0x1c0",
        ),
        (
            RACE,
            "Race reported between Write\nat sum.cu:13 in total<float>(T1 *)+0x90\nat sum.cu:14 in total<float>(T1 *)+0xa0",
        ),
        (
            "========= Uninitialized __global__ memory read of size 4 bytes\n=========     at add(int *)+0x70 in add.cu:41\n"
            "=========     by thread (31,0,0) in block (1,0,0)\n",
            "Uninitialized __global__ memory read of size 4 bytes\nat add.cu:41 in add(int *)+0x70",
        ),
        (
            "========= Barrier error detected. Divergent thread(s) in block.\n=========     at norm+0x15520\n",
            "Barrier error detected. Divergent thread(s) in block\nat norm+0x15520",
        ),
        # From the manual of release 2026.4
        (
            "========= Invalid __global__ write of size 4 bytes\n=========     at unaligned_kernel()+0x100 in demo.cu:34\n"
            "=========     by thread (0,0,0) in block (0,0,0)\n=========     Address 0x7cc43aa00001 is misaligned\n",
            "Invalid __global__ write of size 4 bytes\nat demo.cu:34 in unaligned_kernel()+0x100",
        ),
        (
            "========= Potential invalid __shared__ read of size 4 bytes\n"
            "=========     at RemoteAccess(int *, int)+0x170 in RaceCluster.cu:10\n",
            "Potential invalid __shared__ read of size 4 bytes\nat RaceCluster.cu:10 in RemoteAccess(int *, int)+0x170",
        ),
        (
            "========= Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in /home/x/block_error.cu:41\n"
            "=========     and Read access at sumKernel(int *, int *)+0x100 in /home/x/block_error.cu:51 [508 hazards]\n",
            "Race reported between Write\nat block_error.cu:41 in sumKernel(int *, int *)+0x90\n"
            "at block_error.cu:51 in sumKernel(int *, int *)+0x100",
        ),
        (
            "========= Barrier error detected. Invalid arguments\n=========     at __cuda_sm70_warpsync+0x30\n"
            "=========     by thread (0,0,0) in block (0,0,0)\n",
            "Barrier error detected. Invalid arguments\nat __cuda_sm70_warpsync+0x30",
        ),
        (
            '========= Error: Device not supported. Please refer to the "Supported Devices" section of the documentation\n',
            'Device not supported. Please refer to the "Supported Devices" section of the documentation',
        ),
        ('========= Program hit cudaErrorMemoryAllocation (error 2) due to "out of memory" on CUDA API call\n', ""),
        ("========= WARNING: Race reported between Write access at RAW()+0xf0 in raceGroupBasic.cu:40\n", ""),
        ("========= Leaked 64 bytes at 0x400200200\n", ""),
    ],
)
def test_a_report_of_a_tool(log: str, expected: str) -> None:
    assert compute_sanitizer.report(log) == expected


def test_other_output_is_no_report() -> None:
    assert summary("Traceback ...\nValueError: no") == ""

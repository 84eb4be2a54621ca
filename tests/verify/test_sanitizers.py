"""Workers under a sanitizer, and what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.sanitizers import EXIT_CODE, summary, under_sanitizer
from tests.verify.faults import FAULTS, plant

TILEKIT = Path(__file__).resolve().parents[2] / "fixtures" / "tilekit"
MEMCHECK = """
========= Invalid __global__ write of size 2 bytes
=========     at void gelu<__half>(const T1 *, T1 *, long)+0x1c0 in /home/u/kernels/gelu.cu:8
=========     by thread (213,0,0) in block (1,0,0)
=========     Address 0x7f0000000600 is out of bounds
========= ERROR SUMMARY: 1 error
"""
RUN = """
import torch
from tilekit.ops import GeluFwdOp
x = torch.zeros(469, dtype=torch.float16)
print(GeluFwdOp()(x[:256]).sum().item())
GeluFwdOp()(x)
"""


def environment() -> dict[str, str]:
    try:
        return under_sanitizer("cpu", os.environ)[1]
    except OpschemaError as error:
        pytest.skip(str(error))


def test_address_sanitizer_names_the_line_that_writes_beyond(tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "writes one element beyond its output")
    root = plant(fault, TILEKIT, tmp_path)
    environ = {**environment(), "TILEKIT_CACHE_DIR": str(tmp_path / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (EXIT_CODE, "0.0\n"), done.stderr
    what, *places = summary(done.stderr).splitlines()
    assert what == "heap-buffer-overflow, READ of size 2"
    assert any(place.startswith("at gelu.cu:") for place in places), places


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
